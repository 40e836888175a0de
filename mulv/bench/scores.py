"""Normalised scores, to compare returns of different tasks: 0 is uniform actions, 1 is a ceiling."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from mulv.bench.published import ceiling, paper_table, random_return, split_task
from mulv.bench.runs import Run

Table = Mapping[str, Mapping[str, Sequence[Run]]]  # label, problem: runs
SHARES = np.arange(1, 21) / 20  # shares of a task's steps at which learning curves are compared


class Scale(NamedTuple):
    """The returns that score 0 and 1, and where the latter is from."""

    zero: float
    one: float
    source: str  # "ceiling", "paper", "best here", "success"


def scale(runs: Sequence[Run]) -> Scale | None:
    """The scale of one problem, given all its runs; None without a random return, or if no run exceeds it."""
    if all(run.success is not None for run in runs):
        return Scale(0.0, 1.0, "success")
    task = runs[0].task
    name, zero = split_task(task), random_return(task)
    if zero is None:
        return None
    if (known := ceiling(task)) is not None:
        return Scale(zero, known.best, "ceiling")
    if name.variant == "mbbl" and name.base in paper_table():
        return Scale(zero, paper_table()[name.base]["lvrep"].mean, "paper")
    labels = {run.label for run in runs}
    best = max(float(np.mean([run.returns[-1] for run in runs if run.label == label])) for label in labels)
    return Scale(zero, best, "best here") if best > zero else None


def scales(table: Table) -> dict[str, Scale]:
    """The scale of every problem that has one."""
    runs: dict[str, list[Run]] = {}
    for problems in table.values():
        for problem, some in problems.items():
            runs.setdefault(problem, []).extend(some)
    return {problem: found for problem, some in runs.items() if (found := scale(some)) is not None}


def comparable(table: Table, problems: Mapping[str, Scale]) -> tuple[list[str], list[str]]:
    """Methods and problems such that every method has every problem, chosen for many pairs."""
    covered = {label: {p for p in rows if p in problems} for label, rows in table.items()}
    ranked = sorted((label for label in covered if covered[label]), key=lambda label: -len(covered[label]))
    best: tuple[float, list[str], set[str]] = (0.0, [], set())
    for count in range(1, len(ranked) + 1):
        shared = set.intersection(*(covered[label] for label in ranked[:count]))
        pairs = count * len(shared) if count > 1 else 0.5  # a single method only if no two share a problem
        if shared and pairs > best[0]:
            best = (pairs, ranked[:count], shared)
    return [label for label in table if label in best[1]], sorted(best[2])


def final_scores(runs: Sequence[Run], scale: Scale) -> np.ndarray:
    """The score of each run's last evaluation."""
    return np.asarray([_scored(run, scale)[-1] for run in runs])


def score_curves(runs: Sequence[Run], scale: Scale, budget: float) -> np.ndarray:
    """Scores (shares, seeds) at SHARES of a budget of steps, linearly interpolated between evaluations."""
    return np.stack([np.interp(SHARES * budget, run.steps, _scored(run, scale)) for run in runs], axis=-1)


def _scored(run: Run, scale: Scale) -> np.ndarray:
    values = run.success if scale.source == "success" and run.success is not None else run.returns
    return (values - scale.zero) / (scale.one - scale.zero)
