"""Small SVG plots. Colours are CSS classes, so that they follow the page's light or dark theme."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from mulv.bench.report import numbers
from mulv.bench.report.html import Html, element, join

WIDTH = 400.0  # of the view box: about a figure's width on screen, so that text keeps its size
Series = Sequence[float] | np.ndarray


@dataclass
class Plot:
    """Axes and what is drawn between them; `marks` are drawn in the order in which they were added."""

    title: str
    x_label: str
    y_label: str
    x_range: tuple[float, float]
    y_range: tuple[float, float]
    x_text: Callable[[float], str] = numbers.short
    y_text: Callable[[float], str] = numbers.short
    height: float = 250.0
    marks: list[Html] = field(default_factory=list)
    LEFT, RIGHT, TOP, BOTTOM = 58.0, 14.0, 10.0, 40.0

    def x(self, value: float) -> float:
        low, high = self.x_range
        return self.LEFT + (value - low) / (high - low) * (WIDTH - self.LEFT - self.RIGHT)

    def y(self, value: float) -> float:
        low, high = self.y_range
        return (
            self.height - self.BOTTOM - (value - low) / (high - low) * (self.height - self.TOP - self.BOTTOM)
        )

    def line(self, xs: Series, ys: Series, css: str, said: str) -> None:
        """A line through points."""
        self.marks.append(element("path", element("title", said), d=self._path(xs, ys), class_=f"line {css}"))

    def steps(self, xs: Series, ys: Series, css: str, said: str) -> None:
        """A step function, which keeps its value until the next point."""
        self.line(np.repeat(xs, 2)[1:], np.repeat(ys, 2)[:-1], css, said)

    def band(self, xs: Series, low: Series, high: Series, css: str) -> None:
        """The area between two lines, clipped to the axes."""
        low, high = (np.clip(np.asarray(edge), *self.y_range) for edge in (low, high))
        xs = np.asarray(xs)
        outline = self._path(np.append(xs, xs[::-1]), np.append(high, low[::-1]))
        self.marks.append(element("path", d=outline + "Z", class_=f"band {css}"))

    def points(self, xs: Series, ys: Series, css: str, said: Sequence[str]) -> None:
        """Points that appear on hovering, with their texts."""
        for x, y, words in zip(xs, ys, said, strict=True):
            title = element("title", words)
            self.marks.append(element("circle", title, cx=self.x(x), cy=self.y(y), r=5, class_=f"hit {css}"))

    def level(self, y: float, said: str) -> bool:
        """A dotted horizontal line, if it is within the axes; returns whether it is."""
        low, high = self.y_range
        if low <= y <= high:
            across = f"M{self.LEFT:.1f} {self.y(y):.1f}H{WIDTH - self.RIGHT:.1f}"
            self.marks.append(element("path", element("title", said), d=across, class_="level"))
        return low <= y <= high

    def render(self) -> Html:
        """The plot as an SVG element."""
        return svg(self.title, self.height, *self._axes(), *self.marks)

    def _axes(self) -> list[Html]:
        right, bottom = WIDTH - self.RIGHT, self.height - self.BOTTOM
        parts = []
        for value in numbers.ticks(*self.y_range):
            at = self.y(value)
            parts.append(element("path", d=f"M{self.LEFT:.1f} {at:.1f}H{right:.1f}", class_="grid"))
            label = self.y_text(value)
            parts.append(element("text", label, x=self.LEFT - 6, y=at + 3.5, text_anchor="end"))
        for value in numbers.ticks(*self.x_range):
            parts.append(
                element("text", self.x_text(value), x=self.x(value), y=bottom + 15, text_anchor="middle")
            )
        middle = (self.LEFT + right) / 2
        parts.append(element("path", d=f"M{self.LEFT:.1f} {bottom:.1f}H{right:.1f}", class_="axis"))
        parts.append(element("text", self.x_label, x=middle, y=self.height - 7, text_anchor="middle"))
        turn = f"translate(10 {(self.TOP + bottom) / 2:.1f}) rotate(-90)"
        parts.append(element("text", self.y_label, transform=turn, text_anchor="middle"))
        return parts

    def _path(self, xs: Series, ys: Series) -> str:
        return "M" + "L".join(f"{self.x(x):.1f} {self.y(y):.1f}" for x, y in zip(xs, ys, strict=True))


def svg(title: str, height: float, *marks: Html, width: float = WIDTH) -> Html:
    """An SVG element as wide as its figure."""
    return element("svg", *marks, viewBox=f"0 0 {width:.0f} {height:.0f}", role="img", aria_label=title)


@dataclass(frozen=True)
class Row:
    """A row of an interval plot; without an interval it is a point."""

    name: str
    css: str
    value: float
    interval: tuple[float, float] | None


def interval_plot(title: str, rows: Sequence[Row], width: float, centre: float | None = None) -> Html:
    """A plot of values and intervals, one per row, with names on the left and numbers on the right."""
    # A letter takes about seven units; a longer name is cut, and shown in full on hovering.
    longest = min(int(width * 0.065), max(len(row.name) for row in rows))
    left, right, top, pitch = 10 + 7.0 * longest, width - 46.0, 6.0, 24.0
    ends = [end for row in rows for end in (row.interval or (row.value, row.value))]
    low, high = padded([*ends, *([] if centre is None else [centre])], 0.06)
    bottom = top + pitch * len(rows)

    def x(value: float) -> float:
        return left + (value - low) / (high - low) * (right - left)

    marks = []
    for value in numbers.ticks(low, high, 4):
        marks.append(element("path", d=f"M{x(value):.1f} {top:.1f}V{bottom:.1f}", class_="grid"))
        marks.append(element("text", numbers.short(value), x=x(value), y=bottom + 15, text_anchor="middle"))
    if centre is not None:
        marks.append(element("path", d=f"M{x(centre):.1f} {top:.1f}V{bottom:.1f}", class_="level"))
    for number, row in enumerate(rows):
        y = top + pitch * (number + 0.5)
        said = numbers.spread(row.value, *row.interval) if row.interval else numbers.fixed(row.value)
        parts = [element("title", f"{row.name}: {said}")]
        name = row.name if len(row.name) <= longest else row.name[: longest - 1] + "…"
        parts.append(element("text", name, x=left - 8, y=y + 4, text_anchor="end"))
        if row.interval:
            start, end = (x(edge) for edge in row.interval)
            parts.append(
                element("rect", x=start, y=y - 6, width=max(end - start, 1), height=12, rx=3, class_="range")
            )
        parts.append(element("circle", cx=x(row.value), cy=y, r=4, class_="dot"))
        parts.append(element("text", numbers.fixed(row.value), x=right + 6, y=y + 4, class_="value"))
        marks.append(element("g", join(*parts), class_=row.css))
    return svg(title, bottom + 22, *marks, width=width)


def padded(values: Sequence[float] | np.ndarray, share: float = 0.05) -> tuple[float, float]:
    """A range around values, with a margin at both ends."""
    low, high = float(np.min(values)), float(np.max(values))
    size = max(abs(low), abs(high), 1.0)
    span = high - low if high - low > 1e-9 * size else size  # for (almost) equal values
    return low - share * span, high + share * span
