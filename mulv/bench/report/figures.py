"""Figures with their titles, legends and warnings; learning curves."""

from collections.abc import Mapping, Sequence

import numpy as np

from mulv.bench import statistics
from mulv.bench.report import numbers
from mulv.bench.report.html import Html, element
from mulv.bench.report.plot import Plot, padded
from mulv.bench.runs import Run

ENOUGH_SEEDS = 3
Colours = Mapping[str, str]  # label: CSS classes


def figure(title: str, drawing: Html, *below: str) -> Html:
    """A drawing with a title above and texts below."""
    return element("figure", element("figcaption", title), drawing, *below)


def legend(entries: Mapping[str, str], colours: Colours, level: str = "") -> Html:
    """A legend: names and their texts beside their colours, and the name of a reference level, if any."""
    items = [
        element("span", element("i", class_=colours[label]), element("span", label), " ", said)
        for label, said in entries.items()
    ]
    if level:
        items.append(element("span", element("i", class_="dotted"), level))
    return element("div", *items, class_="legend")


def note(words: str) -> Html:
    return element("p", words, class_="few")


def learning_curves(
    title: str, runs: Mapping[str, Sequence[Run]], colours: Colours, random: float | None
) -> Html:
    """The learning curves of one problem: a thin line per seed, a thick mean, and its 95 % t-interval."""
    success = all(run.success is not None for some in runs.values() for run in some)
    curves = {label: [_values(run, success) for run in some] for label, some in runs.items()}
    every = np.concatenate([values for some in curves.values() for values in some])
    last = max(float(run.steps[-1]) for some in runs.values() for run in some)
    plot = Plot(
        title=f"Learning curves of {title}",
        x_label="environment steps",
        y_label="success rate" if success else "return",
        x_range=(0.0, last),
        y_range=(0.0, 1.0) if success else padded(every),
        x_text=numbers.steps,
    )
    few = []
    for label, some in runs.items():
        css = colours[label]
        steps, means = _shared(some, curves[label])
        if len(some) >= ENOUGH_SEEDS and steps.size:
            half = statistics.t_half_width(means)
            plot.band(steps, means.mean(axis=-1) - half, means.mean(axis=-1) + half, css)
        elif len(some) < ENOUGH_SEEDS:
            few.append(f"{label} has {numbers.count(len(some), 'seed')}")
    for label, some in runs.items():
        for run, values in zip(some, curves[label], strict=True):
            plot.line(run.steps, values, f"thin {colours[label]}", f"{label}, seed {run.seed}")
    for label, some in runs.items():
        steps, means = _shared(some, curves[label])
        if steps.size:
            middle = means.mean(axis=-1)
            said = [
                f"{label}: {numbers.short(y)} at {numbers.steps(x)} steps"
                for x, y in zip(steps, middle, strict=True)
            ]
            plot.line(steps, middle, f"thick {colours[label]}", f"{label}, mean")
            plot.points(steps, middle, colours[label], said)
    levels = ""
    if random is not None and not success and plot.level(random, f"random actions: {numbers.short(random)}"):
        levels = "random actions"
    seeds = {label: numbers.count(len(some), "seed") for label, some in runs.items()}
    below = [legend(seeds, colours, levels)]
    if few:
        below.append(note(f"Fewer than {ENOUGH_SEEDS} seeds, so no band: {', '.join(few)}."))
    return figure(title, plot.render(), *below)


def _values(run: Run, success: bool) -> np.ndarray:
    return run.success if success and run.success is not None else run.returns


def _shared(runs: Sequence[Run], values: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """The steps at which all runs were evaluated, and their values there (steps, seeds)."""
    steps = runs[0].steps
    for run in runs[1:]:
        steps = np.intersect1d(steps, run.steps)
    columns = [found[np.isin(run.steps, steps)] for run, found in zip(runs, values, strict=True)]
    return steps, np.stack(columns, axis=-1)
