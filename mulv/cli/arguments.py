"""What of the arguments must be known before the options are."""

from collections.abc import Sequence

from mulv.core.errors import MulvError


def value_of(flag: str, arguments: Sequence[str]) -> str | None:
    """A flag's value, or None where it is not given."""
    for position, argument in enumerate(arguments):
        name, equals, value = argument.partition("=")
        if name == flag:
            if not equals and position + 1 == len(arguments):
                raise MulvError(f"{flag} needs a value")
            return value if equals else arguments[position + 1]
    return None


def asks_for_help(arguments: Sequence[str]) -> bool:
    """Whether the arguments ask what the options are."""
    return bool({"-h", "--help"} & {*arguments})
