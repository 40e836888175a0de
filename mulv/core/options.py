"""Nested configurations: dataclasses to JSON and back, and changing options by dotted names.

A group of options is a dataclass in a field of another. If a field is a union of groups, each has a class
variable `kind` with its name, so that options without effect cannot be set.
"""

import dataclasses
import functools
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

from mulv.core.errors import MulvError
from mulv.core.limits import check_fields
from mulv.core.names import lookup, nearest

Options = Mapping[str, Any]  # named as on the command line: "window", "critic.features", "critic"
Tree = dict[str, Any]
T = TypeVar("T")
MOST_WHOLE = 2**53  # up to here a float represents every integer
NONE = "none"  # the kind of an optional group that is off


@dataclass(frozen=True)
class Group:
    """Options that belong together. `name` is the field they are found in, for messages."""

    name: ClassVar[str] = ""

    def __post_init__(self) -> None:
        check_fields(self, f"{self.name}." if self.name else "")


def to_tree(config: Any) -> Tree:
    """A configuration as a dict of JSON types; a group of several kinds has an entry `kind`."""
    cls: Any = type(config)
    kind = kind_of(cls)
    tree: Tree = {} if kind is None else {"kind": kind}
    for name in _fields(cls):
        value = getattr(config, name)
        tree[name] = to_tree(value) if dataclasses.is_dataclass(value) else value
    return tree


def from_tree(cls: Any, tree: Tree) -> Any:
    """The configuration from what `to_tree` wrote; missing fields take their defaults."""
    values: Tree = {}
    for name, value in tree.items():
        if name == "kind" and kind_of(cls) is not None:
            continue
        hint = _hint(cls, name)
        groups = group_kinds(hint)
        if groups and isinstance(value, dict):
            value = from_tree(_group_of(cls, name, value), value)
        elif not _fits(value, hint):
            raise MulvError(f"{cls.__name__}.{name} is {value!r:.80}, which is not {_words(hint)}")
        values[name] = float(value) if type(value) is int and hint in (float, float | None) else value
    return cls(**values)


def with_options(config: T, *layers: Options) -> T:
    """The configuration with options changed; limits are checked on the result.

    The order of options in a layer does not matter; several layers are applied one after another.
    A field of several kinds takes a kind's name, and keeps options of both kinds: `{"critic": "deep"}`.
    A group takes single options or a dict: `{"critic.features": 9}`, `{"critic": {"features": 9}}`.
    """
    tree = to_tree(config)
    for options in layers:
        for name in sorted(options, key=lambda name: name.count(".")):  # kinds before their options
            if options.get(group := name.rpartition(".")[0], "") in (None, NONE):
                raise MulvError(f"{group} is {NONE}, so {name} cannot be set")
            _set(type(config), tree, name.split("."), options[name], name)
    return from_tree(type(config), tree)


def _set(cls: type, tree: Tree, path: list[str], value: Any, name: str) -> None:
    field, *rest = path
    kinds = group_kinds(_hint(cls, field, name))
    if not kinds:
        if rest:
            raise MulvError(f"no option is called {name!r}: {field} is a single value")
        tree[field] = value
    elif rest and not (rest == ["kind"] and _several(kinds)):
        _set_in_group(cls, tree, field, ".".join(rest), value, name)
    elif isinstance(value, str) and (_several(kinds) or NONE in kinds):
        tree[field] = _of_kind(kinds, value, tree.get(field), field)
    elif isinstance(value, dict):
        if _several(kinds) and "kind" in value:
            _set(cls, tree, [field], value["kind"], name)
            value = {option: of for option, of in value.items() if option != "kind"}
        if not isinstance(tree.get(field), dict):
            tree[field] = to_tree(_first(kinds)())
        for option in value:
            _set_in_group(cls, tree, field, option, value[option], f"{name}.{option}")
    else:
        tree[field] = to_tree(value) if type(value) in kinds.values() and value is not None else value


def _set_in_group(cls: type, tree: Tree, field: str, option: str, value: Any, name: str) -> None:
    """Set an option of the group in a field; a group that is off is turned on."""
    if not isinstance(tree.get(field), dict):
        tree[field] = to_tree(_first(group_kinds(_hint(cls, field)))())
    _set(_group_of(cls, field, tree[field]), tree[field], option.split("."), value, name)


def _several(kinds: dict[str, type | None]) -> bool:
    return len(kinds.keys() - {NONE}) > 1


def _first(kinds: dict[str, type | None]) -> type:
    return next(group for group in kinds.values() if group is not None)


def _of_kind(kinds: dict[str, type | None], kind: str, old: Any, field: str) -> Tree | None:
    """A group of another kind: its defaults, and the old values of options that both kinds have."""
    if not _several(kinds) and kind != NONE:
        raise MulvError(f"{field} is {kind!r}; its options turn it on, and {NONE!r} turns it off")
    if (group := lookup(f"kind of {field}", kind, kinds)) is None:
        return None
    new = to_tree(group())
    return new | {name: value for name, value in (old or {}).items() if name in new and name != "kind"}


@functools.cache
def group_kinds(hint: Any) -> dict[str, type | None]:
    """The groups a field may hold, by kind; empty if it holds a plain value."""
    if typing.get_origin(hint) is typing.Annotated:
        return group_kinds(typing.get_args(hint)[0])
    union = typing.get_origin(hint) in (typing.Union, types.UnionType)
    parts = typing.get_args(hint) if union else (hint,)
    if not any(dataclasses.is_dataclass(part) for part in parts):
        return {}
    return {
        NONE if part is types.NoneType else kind_of(part) or "": None if part is types.NoneType else part
        for part in parts
    }


def kind_of(group: Any) -> str | None:
    """The kind of a group; None if it has none."""
    return None if "kind" in _fields(group) else getattr(group, "kind", None)


def _group_of(cls: type, name: str, tree: Tree) -> type:
    kinds = {kind: group for kind, group in group_kinds(_hint(cls, name)).items() if group is not None}
    if len(kinds) == 1:
        return next(iter(kinds.values()))
    if not isinstance(kind := tree.get("kind"), str):
        raise MulvError(f"{cls.__name__}.{name} says no kind; there are: {', '.join(kinds)}")
    return lookup(f"kind of {name}", kind, kinds)


def _hint(cls: type, field: str, name: str | None = None) -> Any:
    if field not in _fields(cls):
        near = nearest(field, _fields(cls))
        where = "" if name is None or name == field else f" (in {name!r})"
        hint = f"; did you mean {near!r}?" if near else ""
        raise MulvError(f"{cls.__name__} has no field {field!r}{where}{hint}")
    return _hints(cls)[field]


@functools.cache
def _fields(cls: Any) -> dict[str, dataclasses.Field]:
    return {f.name: f for f in dataclasses.fields(cls)}


@functools.cache
def _hints(cls: Any) -> dict[str, Any]:
    return typing.get_type_hints(cls)


def _fits(value: Any, hint: Any) -> bool:
    """Whether a JSON value has an annotated type (only types that configurations use)."""
    origin = typing.get_origin(hint)
    if origin is typing.Literal:
        return value in typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return any(_fits(value, option) for option in typing.get_args(hint))
    if hint is float:
        return isinstance(value, float) or (type(value) is int and abs(value) <= MOST_WHOLE)
    if hint is int:
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, hint)


def _words(hint: Any) -> str:
    if kinds := group_kinds(hint):
        names = [kind for kind, group in kinds.items() if kind and group is not None]
        return "an object" + (f" of kind {' or '.join(names)}" if names else "")
    if typing.get_origin(hint) is typing.Literal:
        return " or ".join(map(repr, typing.get_args(hint)))
    return hint.__name__ if isinstance(hint, type) else str(hint)
