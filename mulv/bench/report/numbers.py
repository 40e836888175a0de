"""Formats numbers for reading."""

import math

MINUS = "\u2212"


def steps(value: float) -> str:
    """A number of steps: 500, 30K, 1.5M."""
    for size, unit in ((1e6, "M"), (1e3, "K")):
        if abs(value) >= size:
            return f"{value / size:.1f}".removesuffix(".0") + unit
    return f"{value:.0f}"


def short(value: float) -> str:
    """A number with about three significant digits and a typographic minus."""
    if value == 0 or not math.isfinite(value):
        return "0" if value == 0 else str(value)
    digits = max(0, 2 - math.floor(math.log10(abs(value))))
    text = f"{value:,.{min(digits, 4)}f}"
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return text.replace("-", MINUS)


def plus_minus(mean: float, spread: float) -> str:
    """A mean ± its spread, with the same number of decimals."""
    size = max(abs(mean), spread)
    decimals = 0 if size >= 100 else 1 if size >= 10 else 2 if size >= 0.1 else 4
    return f"{mean:,.{decimals}f} ± {spread:,.{decimals}f}".replace("-", MINUS)


def signed(value: float) -> str:
    """A number with its sign, also if it is positive."""
    return short(value) if value < 0 else f"+{short(value)}"


def spread(value: float, low: float, high: float) -> str:
    """A value and its interval."""
    return f"{fixed(value)} [{fixed(low)}, {fixed(high)}]"


def fixed(value: float) -> str:
    """A score with two decimals."""
    return f"{value:.2f}".replace("-", MINUS)


def count(number: int, noun: str) -> str:
    """`1 seed`, `4 seeds`."""
    return f"{number} {noun}" + ("" if number == 1 else "s")


def ticks(low: float, high: float, wanted: int = 5) -> list[float]:
    """About `wanted` round numbers from low to high."""
    if not high > low:
        return [low]
    rough = (high - low) / wanted
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * factor for factor in (1, 2, 2.5, 5, 10) if power * factor >= rough * 0.999)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [number * step for number in range(first, last + 1)]
