"""Numbers as people read them, and marks where the numbers are."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mulv.bench.report import numbers
from mulv.bench.report.html import Html, element
from mulv.bench.report.plot import WIDTH, Plot, Row, interval_plot, padded


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        (0, "0"),
        (3596.2, "3,596"),
        (-146.2, "−146"),
        (9.8, "9.8"),
        (0.0123, "0.0123"),
        (100.0, "100"),
        (69.3, "69.3"),
    ],
)
def test_three_digits_matter(value, wanted):
    assert numbers.short(value) == wanted


@pytest.mark.parametrize(
    ("value", "wanted"),
    [(500, "500"), (30_000, "30K"), (2500, "2.5K"), (1_500_000, "1.5M"), (200_000, "200K")],
)
def test_steps_are_in_thousands_and_millions(value, wanted):
    assert numbers.steps(value) == wanted


@pytest.mark.parametrize(
    ("mean", "spread", "wanted"),
    [
        (3596.2, 874.5, "3,596 ± 874"),
        (69.3, 12.8, "69.3 ± 12.8"),
        (0.9, 0.1, "0.90 ± 0.10"),
        (-1.2, 0.1, "−1.20 ± 0.10"),
    ],
)
def test_a_mean_and_its_spread_have_the_same_decimals(mean, spread, wanted):
    assert numbers.plus_minus(mean, spread) == wanted


@given(st.floats(-1e6, 1e6), st.floats(1e-3, 1e6))
def test_ticks_are_round_few_and_within(low, width):
    found = numbers.ticks(low, low + width)
    assert 1 <= len(found) <= 7
    assert all(low - 1e-6 * width <= tick <= low + width * (1 + 1e-6) for tick in found)
    if len(found) > 1:
        digits = (found[1] - found[0]) / 10.0 ** np.floor(np.log10(found[1] - found[0]) + 1e-9)
        assert min(abs(digits - round_step) for round_step in (1, 2, 2.5, 5)) < 1e-3


def test_text_is_escaped_and_markup_is_not():
    assert element("p", "<b>", Html("<i>"), title='"') == '<p title="&quot;">&lt;b&gt;<i></p>'
    assert element("a", class_="x", font_size=3, none=None) == '<a class="x" font-size="3"></a>'


def test_lines_go_from_corner_to_corner():
    plot = Plot("t", "x", "y", (0.0, 10.0), (0.0, 1.0))
    plot.line([0, 10], [0, 1], "c0", "said")
    left, bottom, right, top = map(float, re.search(r"M(\S+) (\S+)L(\S+) ([\d.]+)", plot.marks[0]).groups())
    assert (left, right) == (Plot.LEFT, WIDTH - Plot.RIGHT)
    assert (top, bottom) == (Plot.TOP, plot.height - Plot.BOTTOM)


def test_a_band_stays_within_the_axes_and_a_level_outside_is_not_drawn():
    plot = Plot("t", "x", "y", (0.0, 1.0), (0.0, 1.0))
    plot.band([0, 1], [-50, -50], [50, 50], "c0")
    heights = [float(y) for y in re.findall(r"[ML][\d.]+ (-?[\d.]+)", plot.marks[0])]
    assert (min(heights), max(heights)) == (Plot.TOP, plot.height - Plot.BOTTOM)
    assert plot.level(0.5, "within")
    assert not plot.level(2.0, "outside")
    assert len(plot.marks) == 2


def test_rows_are_in_the_order_of_their_values_on_the_axis():
    rows = [Row("a", "c0", 0.2, (0.1, 0.3)), Row("b", "c1", 0.8, None)]
    drawn = interval_plot("t", rows, width=300)
    first, second = (float(x) for x in re.findall(r'<circle cx="([\d.]+)"', drawn))
    assert first < second
    start, width = map(float, re.search(r'<rect x="([\d.]+)" y="[\d.]+" width="([\d.]+)"', drawn).groups())
    assert start < first < start + width
    assert drawn.count("<rect") == 1
    assert "a: 0.20 [0.10, 0.30]" in drawn


@given(st.lists(st.floats(-1e6, 1e6), min_size=1))
def test_a_range_holds_its_values_and_is_never_empty(values):
    low, high = padded(values)
    assert low < min(values) <= max(values) < high
