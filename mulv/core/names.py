"""Look-up by name, with suggestions for typing errors."""

import difflib
from collections.abc import Iterable, Mapping
from typing import TypeVar

from mulv.core.errors import MulvError

T = TypeVar("T")


def nearest(name: str, names: Iterable[str]) -> str | None:
    """The name that was probably meant, ignoring prefix and case; None if none is close."""
    by_lower = {n.lower(): n for n in names}
    near = difflib.get_close_matches(name.lower(), by_lower, n=1, cutoff=0.5)
    return by_lower[near[0]] if near else None


def lookup(what: str, name: str, table: Mapping[str, T]) -> T:
    """`table[name]`; an unknown name is an error that suggests the nearest one."""
    if name in table:
        return table[name]
    near = nearest(name, table)
    hint = f"did you mean {near!r}?" if near else f"there are: {', '.join(table)}"
    raise MulvError(f"no {what} is called {name!r}; {hint}")
