"""Robust aggregates over tasks and seeds (Agarwal et al., 2021).

Scores are a sequence with one array per task and seeds on its last axis: tasks may have different numbers of
seeds, and every task has the same weight. Axes before the last are kept, so that the same functions work for
a table, a curve over steps, and thousands of bootstrap samples.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from scipy import stats

from mulv.core.errors import MulvError

Scores = Sequence[np.ndarray]


def mean(scores: Scores) -> np.ndarray:
    """The mean over tasks of their mean over seeds."""
    return np.mean([task.mean(axis=-1) for task in scores], axis=0)


def median(scores: Scores) -> np.ndarray:
    """The median over tasks of their mean over seeds."""
    return np.median([task.mean(axis=-1) for task in scores], axis=0)


def interquartile_mean(scores: Scores) -> np.ndarray:
    """The mean of the middle half of all runs; a run at its edge counts in part."""
    values = np.concatenate(scores, axis=-1)
    share = np.concatenate([np.full(task.shape[-1], 1 / task.shape[-1] / len(scores)) for task in scores])
    order = np.argsort(values, axis=-1)
    weight = share[order]
    above = np.cumsum(weight, axis=-1)
    within = np.clip(np.minimum(above, 0.75) - np.maximum(above - weight, 0.25), 0, None)
    return (within * np.take_along_axis(values, order, axis=-1)).sum(axis=-1) / within.sum(axis=-1)


def optimality_gap(scores: Scores, target: float = 1.0) -> np.ndarray:
    """The mean of max(target − score, 0): how far runs fall short of the target on average."""
    return target - mean([np.minimum(task, target) for task in scores])


AGGREGATES: dict[str, Callable[[Scores], np.ndarray]] = {
    "IQM": interquartile_mean,
    "median": median,
    "mean": mean,
    "optimality gap": optimality_gap,
}


def performance_profile(scores: Scores, thresholds: np.ndarray) -> np.ndarray:
    """The share of runs that score above each threshold (on a new last axis), averaged over tasks."""
    return mean([task[..., None, :] > thresholds[:, None] for task in scores])


def probability_of_improvement(first: Scores, second: Scores) -> np.ndarray:
    """The probability that a run of the first method beats one of the second, averaged over tasks; a tie
    counts half.
    """
    if len(first) != len(second):
        raise MulvError(f"methods are compared on the same tasks; here are {len(first)} and {len(second)}")
    difference = [x[..., :, None] - y[..., None, :] for x, y in zip(first, second, strict=True)]
    return np.mean([((d > 0) + 0.5 * (d == 0)).mean(axis=(-2, -1)) for d in difference], axis=0)


class Estimate(NamedTuple):
    """A statistic and the ends of its interval."""

    value: np.ndarray
    low: np.ndarray
    high: np.ndarray


def estimate(
    statistic: Callable[..., np.ndarray],
    *methods: Scores,
    rng: np.random.Generator,
    samples: int = 2000,
    level: float = 0.95,
) -> Estimate:
    """A statistic with its stratified bootstrap interval (percentiles).

    Seeds are resampled within each task, and separately for each method; curves are resampled as a whole.
    """
    methods = tuple([np.asarray(task, float) for task in scores] for scores in methods)
    for scores in methods:
        _check(scores)
    if not 0 < level < 1 or samples < 1:
        raise MulvError(f"an interval needs a level in (0, 1) and samples; here are {level} and {samples}")
    drawn = statistic(*[[_redrawn(task, samples, rng) for task in scores] for scores in methods])
    low, high = np.quantile(drawn, [(1 - level) / 2, (1 + level) / 2], axis=0)
    return Estimate(statistic(*methods), low, high)


def _redrawn(task: np.ndarray, samples: int, rng: np.random.Generator) -> np.ndarray:
    """Bootstrap samples of a task's seeds, on a new first axis."""
    seeds = task.shape[-1]
    return np.moveaxis(task[..., rng.integers(seeds, size=(samples, seeds))], -2, 0)


def _check(scores: Scores) -> None:
    if not scores:
        raise MulvError("there are no tasks to aggregate")
    for number, task in enumerate(scores):
        if task.ndim == 0 or task.shape[-1] == 0:
            raise MulvError(f"task {number} has no seeds to aggregate")
        if not np.isfinite(task).all():
            raise MulvError(f"task {number} has scores that are not finite")


def t_half_width(values: np.ndarray, level: float = 0.95) -> np.ndarray:
    """Half the width of the mean's t-interval over the last axis, which needs at least two seeds."""
    seeds = values.shape[-1]
    if seeds < 2:
        raise MulvError("an interval over seeds needs at least two of them")
    return stats.t.ppf((1 + level) / 2, seeds - 1) * values.std(axis=-1, ddof=1) / seeds**0.5


def welch_half_width(first: tuple[float, int], second: tuple[float, int], level: float = 0.95) -> float:
    """Half the width of Welch's interval for a difference of means, each given by (deviation, seeds)."""
    variances = [std**2 / seeds for std, seeds in (first, second)]
    total = sum(variances)
    if total == 0:
        return 0.0
    freedom = total**2 / sum(
        v**2 / (seeds - 1) for v, (_, seeds) in zip(variances, (first, second), strict=True)
    )
    return float(stats.t.ppf((1 + level) / 2, freedom) * total**0.5)
