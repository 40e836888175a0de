"""Figures of aggregate scores over tasks and seeds, with intervals (Agarwal et al., 2021)."""

from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np

from mulv.bench import statistics
from mulv.bench.report import numbers
from mulv.bench.report.figures import ENOUGH_SEEDS, Colours, figure, legend, note
from mulv.bench.report.html import Html, element, join
from mulv.bench.report.plot import WIDTH, Plot, Row, interval_plot, padded
from mulv.bench.scores import SHARES, Scale, Table, final_scores, score_curves


def aggregates(
    table: Table,
    problems: Sequence[str],
    scales: Mapping[str, Scale],
    colours: Colours,
    rng: np.random.Generator,
) -> Html:
    """All aggregate figures of methods that share problems."""
    scores = {
        label: [final_scores(rows[problem], scales[problem]) for problem in problems]
        for label, rows in table.items()
    }
    seeds = {label: min(task.size for task in tasks) for label, tasks in scores.items()}
    panels = [_panel(name, scores, seeds, colours, rng) for name in statistics.AGGREGATES]
    wide = [_profile(scores, seeds, colours, rng)]
    if len(table) > 1:
        wide.append(_improvement(scores, seeds, colours, rng))
    wide.append(_efficiency(table, problems, scales, seeds, colours, rng))
    drawn = [element("div", *panels, class_="grid panels"), element("div", *wide, class_="grid")]
    few = [f"{label} ({number})" for label, number in seeds.items() if number < ENOUGH_SEEDS]
    if few:
        words = (
            f"Fewer than {ENOUGH_SEEDS} seeds on some task: {', '.join(few)}. With two an interval is too "
            "narrow; with one there is none."
        )
        drawn.insert(0, note(words))
    return join(*drawn)


SAID = {
    "IQM": "Mean of the middle half of all runs. Higher is better.",
    "median": "Median over tasks of their mean. Higher is better.",
    "mean": "Mean over tasks of their mean. Higher is better.",
    "optimality gap": "How far runs fall short of 1 on average. Lower is better.",
}
TITLES = {"IQM": "Interquartile mean", "median": "Median", "mean": "Mean", "optimality gap": "Optimality gap"}


def _panel(
    name: str,
    scores: Mapping[str, statistics.Scores],
    seeds: Mapping[str, int],
    colours: Colours,
    rng: np.random.Generator,
) -> Html:
    rows = []
    for label, tasks in scores.items():
        value, low, high = statistics.estimate(statistics.AGGREGATES[name], tasks, rng=rng)
        interval = (float(low), float(high)) if seeds[label] > 1 else None
        rows.append(Row(label, colours[label], float(value), interval))
    return figure(TITLES[name], interval_plot(TITLES[name], rows, width=300), element("p", SAID[name]))


def _profile(
    scores: Mapping[str, statistics.Scores],
    seeds: Mapping[str, int],
    colours: Colours,
    rng: np.random.Generator,
) -> Html:
    every = np.concatenate([task for tasks in scores.values() for task in tasks])
    thresholds = np.linspace(*padded(np.append(every, [0.0, 1.0])), 101)
    title = "Performance profile"
    plot = Plot(title, "score τ", "share of runs above τ", (thresholds[0], thresholds[-1]), (0.0, 1.02))
    for label, tasks in scores.items():
        value, low, high = statistics.estimate(
            lambda some: statistics.performance_profile(some, thresholds), tasks, rng=rng, samples=1000
        )
        if seeds[label] > 1:
            plot.band(thresholds, low, high, colours[label])
        plot.steps(thresholds, value, f"thick {colours[label]}", label)
        said = [
            f"{label}: {y:.0%} of runs score above {numbers.fixed(x)}"
            for x, y in zip(thresholds, value, strict=True)
        ]
        plot.points(thresholds[::5], value[::5], colours[label], said[::5])
    words = "A curve further up and right is better; its height at τ is the share of runs that exceed τ."
    return figure(title, plot.render(), legend(dict.fromkeys(scores, ""), colours), element("p", words))


def _improvement(
    scores: Mapping[str, statistics.Scores],
    seeds: Mapping[str, int],
    colours: Colours,
    rng: np.random.Generator,
) -> Html:
    # All pairs if they fit on a screen; for many methods, the first against each other one.
    first = next(iter(scores))
    pairs = list(combinations(scores, 2)) if len(scores) <= 4 else [(first, y) for y in scores if y != first]
    rows = []
    for x, y in pairs:
        value, low, high = statistics.estimate(
            statistics.probability_of_improvement, scores[x], scores[y], rng=rng
        )
        interval = (float(low), float(high)) if min(seeds[x], seeds[y]) > 1 else None
        rows.append(Row(f"{x} > {y}", colours[x], float(value), interval))
    title = "Probability of improvement"
    words = "How likely a run of the first method beats one of the second on a random task. 0.5 is even."
    return figure(title, interval_plot(title, rows, width=WIDTH, centre=0.5), element("p", words))


def _efficiency(
    table: Table,
    problems: Sequence[str],
    scales: Mapping[str, Scale],
    seeds: Mapping[str, int],
    colours: Colours,
    rng: np.random.Generator,
) -> Html:
    budgets = {
        problem: min(float(run.steps[-1]) for rows in table.values() for run in rows[problem])
        for problem in problems
    }
    same = len(set(budgets.values())) == 1
    xs = SHARES * (budgets[problems[0]] if same else 100.0)
    estimates = {
        label: statistics.estimate(
            statistics.interquartile_mean,
            [score_curves(rows[problem], scales[problem], budgets[problem]) for problem in problems],
            rng=rng,
            samples=1000,
        )
        for label, rows in table.items()
    }
    title = "Sample efficiency"
    plot = Plot(
        title,
        "environment steps" if same else "% of each task's steps",
        "IQM of scores",
        (0.0, float(xs[-1])),
        padded(np.concatenate([np.concatenate(found) for found in estimates.values()])),
        x_text=numbers.steps,
    )
    for label, (value, low, high) in estimates.items():
        if seeds[label] > 1:
            plot.band(xs, low, high, colours[label])
        plot.line(xs, value, f"thick {colours[label]}", label)
        said = [f"{label}: {numbers.fixed(y)} at {plot.x_text(x)}" for x, y in zip(xs, value, strict=True)]
        plot.points(xs, value, colours[label], said)
    words = "Interquartile mean of scores as training goes on; steeper is better."
    return figure(title, plot.render(), legend(dict.fromkeys(table, ""), colours), element("p", words))
