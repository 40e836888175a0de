"""Arguments that decide which other options exist."""

import dataclasses
import typing
from collections.abc import Iterator, Sequence
from typing import Any

from mulv.agents import AgentConfig
from mulv.core.errors import MulvError
from mulv.core.names import nearest
from mulv.core.options import NONE, group_kinds, kind_of, with_options


def value_of(flag: str, arguments: Sequence[str]) -> str | None:
    """A flag's value, the last one if it is given several times; None if it is not given."""
    found = None
    for position, argument in enumerate(arguments):
        name, equals, value = argument.partition("=")
        if _is(flag, name):
            following = value if equals else next(iter(arguments[position + 1 :]), "--")
            if following.startswith("--"):
                raise MulvError(f"{flag} needs a value")
            found = following
    return found


def without(flag: str, arguments: Sequence[str]) -> list[str]:
    """The arguments without a flag and its value."""
    kept, skip = [], False
    for argument in arguments:
        name, equals, _ = argument.partition("=")
        if not skip and not _is(flag, name):
            kept.append(argument)
        skip = not skip and _is(flag, name) and not equals
    return kept


def _is(flag: str, name: str) -> bool:
    return name.replace("_", "-") == flag


def asks_for_help(arguments: Sequence[str]) -> bool:
    """Whether the arguments ask for help."""
    return bool({"-h", "--help"} & {*arguments})


def _chosen_groups(agent: AgentConfig) -> Iterator[tuple[str, str, dict[str, type | None]]]:
    """Field, flag and kinds of each group that has several kinds or can be off."""
    hints = typing.get_type_hints(type(agent))
    for field in dataclasses.fields(agent):
        kinds = group_kinds(hints[field.name])
        if len(kinds) > 1:
            yield field.name, f"--{field.name.replace('_', '-')}", kinds


def describe_kinds(agent: AgentConfig) -> str:
    """Help text on choosing the kind of each group that has several, and on turning others on and off."""
    lines = []
    for field, flag, kinds in _chosen_groups(agent):
        if len(kinds.keys() - {NONE}) > 1:
            lines.append(f"{flag} {' | '.join(kinds)}")
        else:
            state = "on" if getattr(agent, field) is not None else "off"
            lines.append(f"{flag}.OPTION, {flag} none (it is {state})")
    if not lines:
        return ""
    return f"Groups of options, whose --help shows the options of the kind you choose: {'; '.join(lines)}."


def choose_kinds(agent: AgentConfig, arguments: Sequence[str]) -> tuple[AgentConfig, list[str]]:
    """The agent with groups of the kinds that the arguments name, and the remaining arguments.

    With `--policy ddpg`, `--policy.noise.initial` becomes an option; an option of a group that is off turns
    it on.
    """
    chosen: dict[str, str | dict[str, Any]] = {}
    left = list(arguments)
    for field, flag, _ in _chosen_groups(agent):
        if (kind := value_of(flag, left)) is not None:
            chosen[field], left = kind.replace("-", "_"), without(flag, left)
        elif getattr(agent, field) is None and any(_option(flag, argument) for argument in left):
            chosen[field] = {}
    agent = with_options(agent, chosen)
    for field, flag, kinds in _chosen_groups(agent):
        for argument in left:
            if (option := _option(flag, argument)) is not None:
                _check_option(flag, option, getattr(agent, field), kinds)
    return agent, left


def _option(flag: str, argument: str) -> str | None:
    """The option of a group that an argument sets, if any: `ridge` for --critic.ridge, --critic.no-ridge."""
    group, dot, rest = argument.partition("=")[0].replace("_", "-").partition(".")
    return rest.partition(".")[0].removeprefix("no-").replace("-", "_") if dot and group == flag else None


def _check_option(flag: str, option: str, group: Any, kinds: dict[str, type | None]) -> None:
    """Raise an error for an option that the chosen kind of group does not have."""
    fields = {kind: [f.name for f in dataclasses.fields(of)] for kind, of in kinds.items() if of is not None}
    kind = NONE if group is None else kind_of(type(group)) or ""
    if option in fields.get(kind, ()):
        return
    where, dashed = f"{flag} {kind}".rstrip(), option.replace("_", "-")
    if others := [f"{flag} {other}".rstrip() for other, names in fields.items() if option in names]:
        raise MulvError(f"{flag}.{dashed} is an option of {' or '.join(others)}, and not of {where}")
    near = nearest(option, fields.get(kind, ()))
    hint = f"; did you mean {flag}.{near.replace('_', '-')}?" if near else ""
    raise MulvError(f"{flag}.{dashed} is no option of {where}{hint}")
