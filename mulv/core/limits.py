"""Limits of a configuration's fields, written beside each: `Annotated[int, at_least(1)]`."""

import dataclasses
import functools
import math
import typing
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from mulv.core.errors import MulvError


@dataclass(frozen=True)
class Limit:
    """A condition on a value, with its text for error messages."""

    holds: Callable[[Any], bool]
    text: str  # completes "x is 0; it must …"


def at_least(least: float) -> Limit:
    """value ≥ least."""
    return Limit(lambda value: value >= least, f"be at least {least}")


def between(least: float, most: float) -> Limit:
    """least ≤ value ≤ most."""
    return Limit(lambda value: least <= value <= most, f"lie between {least} and {most}")


def one_of(*choices: float) -> Limit:
    """value is among the choices."""
    return Limit(lambda value: value in choices, f"be one of {', '.join(map(str, choices))}")


POSITIVE = Limit(lambda value: value > 0, "be positive")
NOT_NEGATIVE = Limit(lambda value: value >= 0, "not be negative")
SHARE = Limit(lambda value: 0 <= value <= 1, "lie in [0, 1]")
STEP = Limit(lambda value: 0 < value <= 1, "lie in (0, 1]")


def check_fields(config: Any, prefix: str = "") -> None:
    """Raise an error about the first field that is outside its limits, infinite or NaN."""
    cls: Any = type(config)
    for name, limits in _limits(cls):
        value = getattr(config, name)
        if value is None:
            continue
        if isinstance(value, float) and not math.isfinite(value):
            raise MulvError(f"{prefix}{name} is {value}; it must be finite")
        for limit in limits:
            if not limit.holds(value):
                raise MulvError(f"{prefix}{name} is {value}; it must {limit.text}")


@functools.cache
def _limits(cls: Any) -> list[tuple[str, list[Limit]]]:
    hints = typing.get_type_hints(cls, include_extras=True)
    return [
        (f.name, [extra for extra in getattr(hints[f.name], "__metadata__", ()) if isinstance(extra, Limit)])
        for f in dataclasses.fields(cls)
    ]
