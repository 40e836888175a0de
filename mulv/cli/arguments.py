"""Arguments that decide which options there are."""

import dataclasses
import typing
from collections.abc import Sequence

from mulv.agents import AgentConfig
from mulv.core.errors import MulvError
from mulv.core.options import NONE, group_kinds, with_options


def value_of(flag: str, arguments: Sequence[str]) -> str | None:
    """A flag's value, or None where it is not given."""
    for position, argument in enumerate(arguments):
        name, equals, value = argument.partition("=")
        if name == flag:
            if not equals and position + 1 == len(arguments):
                raise MulvError(f"{flag} needs a value")
            return value if equals else arguments[position + 1]
    return None


def without(flag: str, arguments: Sequence[str]) -> list[str]:
    """The arguments but for a flag and its value."""
    kept, skip = [], False
    for argument in arguments:
        name, equals, _ = argument.partition("=")
        if not skip and name != flag:
            kept.append(argument)
        skip = not skip and name == flag and not equals
    return kept


def asks_for_help(arguments: Sequence[str]) -> bool:
    """Whether the arguments ask what the options are."""
    return bool({"-h", "--help"} & {*arguments})


def describe_kinds(agent: AgentConfig) -> str:
    """One line a group that has several kinds, or may be off: how to choose among them."""
    hints, lines = typing.get_type_hints(type(agent)), []
    for field in dataclasses.fields(agent):
        kinds, flag = group_kinds(hints[field.name]), f"--{field.name.replace('_', '-')}"
        if len(kinds) > 2 or (len(kinds) == 2 and NONE not in kinds):
            lines.append(f"{flag} {' | '.join(kinds)}")
        elif len(kinds) == 2:
            state = "on" if getattr(agent, field.name) is not None else "off"
            lines.append(f"{flag}.OPTION, {flag} none (it is {state})")
    return "Groups of options have kinds, and --help lists those of the kinds it is given: " + "; ".join(
        lines
    )


def choose_kinds(agent: AgentConfig, arguments: Sequence[str]) -> tuple[AgentConfig, list[str]]:
    """The agent with groups of the kinds that the arguments name, and the arguments that are left.

    `--policy ddpg` makes `--policy.noise.initial` an option; an option of a group that is off turns it on.
    """
    hints = typing.get_type_hints(type(agent))
    left = list(arguments)
    for field in dataclasses.fields(agent):
        kinds = group_kinds(hints[field.name])
        if len(kinds) < 2:
            continue
        flag = f"--{field.name.replace('_', '-')}"
        if (kind := value_of(flag, left)) is not None:
            agent, left = with_options(agent, {field.name: kind}), without(flag, left)
        if getattr(agent, field.name) is None and kind != NONE:
            named = any(argument.replace("_", "-").startswith(f"{flag}.") for argument in left)
            if named:
                agent = with_options(agent, {field.name: {}})
    return agent, left
