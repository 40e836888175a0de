"""Limits of fields: what is outside is one line that names the field, its value and what it must be."""

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import pytest

from mulv.core.errors import MulvError
from mulv.core.limits import NOT_NEGATIVE, POSITIVE, SHARE, STEP, at_least, between, check_fields, one_of
from mulv.core.options import Group


@dataclass(frozen=True)
class Limited(Group):
    """A field of each limit."""

    name: ClassVar[str] = "outer"
    count: Annotated[int, at_least(1)] = 1
    octaves: Annotated[int, between(1, 20)] = 1
    size: Annotated[int, one_of(16, 32, 64)] = 16
    rate: Annotated[float, POSITIVE] = 1.0
    weight: Annotated[float, NOT_NEGATIVE] = 0.0
    share: Annotated[float, SHARE] = 0.5
    gamma: Annotated[float, STEP] = 0.5
    maybe: Annotated[float | None, POSITIVE] = None
    free: float = 0.0
    text: str = ""


@pytest.mark.parametrize(
    ("field", "value", "rule"),
    [
        ("count", 0, "be at least 1"),
        ("octaves", 0, "lie between 1 and 20"),
        ("octaves", 21, "lie between 1 and 20"),
        ("size", 48, "be one of 16, 32, 64"),
        ("rate", 0.0, "be positive"),
        ("rate", -1e-9, "be positive"),
        ("weight", -1e-9, "not be negative"),
        ("share", -0.1, "lie in [0, 1]"),
        ("share", 1.1, "lie in [0, 1]"),
        ("gamma", 0.0, "lie in (0, 1]"),
        ("gamma", 1.1, "lie in (0, 1]"),
        ("maybe", 0.0, "be positive"),
    ],
)
def test_what_is_outside_its_limits_is_named(field: str, value: Any, rule: str) -> None:
    with pytest.raises(MulvError) as raised:
        Limited(**{field: value})
    assert str(raised.value) == f"outer.{field} is {value}; it must {rule}"


@pytest.mark.parametrize(
    "edges",
    [
        {"count": 1, "octaves": 1, "size": 16, "weight": 0.0, "share": 0.0, "gamma": 1e-9},
        {"count": 10**9, "octaves": 20, "size": 64, "share": 1.0, "gamma": 1.0, "maybe": None},
    ],
)
def test_the_ends_of_a_range_belong_to_it(edges: dict[str, Any]) -> None:
    config = Limited(**edges)
    assert {name: getattr(config, name) for name in edges} == edges


@pytest.mark.parametrize("field", ["rate", "weight", "share", "gamma", "maybe", "free"])
@pytest.mark.parametrize("value", [float("inf"), float("-inf"), float("nan")])
def test_no_number_is_infinite_or_nan_with_limits_or_without(field: str, value: float) -> None:
    with pytest.raises(MulvError, match=rf"^outer\.{field} is {value}; it must be finite$"):
        Limited(**{field: value})


def test_the_first_field_that_is_outside_is_the_one_named() -> None:
    with pytest.raises(MulvError, match=r"outer\.count is 0"):
        Limited(count=0, rate=-1.0)


def test_a_group_without_a_name_has_no_prefix() -> None:
    @dataclass(frozen=True)
    class Top:
        count: Annotated[int, at_least(1)] = 1

    with pytest.raises(MulvError, match=r"^count is 0; it must be at least 1$"):
        check_fields(Top(count=0))
