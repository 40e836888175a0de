"""R² on test episodes, with bootstrap intervals over episodes."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

DRAWS = 500  # bootstrap samples of the test episodes
LEVEL = 0.95  # confidence level of the intervals
NO_SPREAD = 1e-9  # a smaller variance counts as zero; targets have a variance of about 1


class Estimate(NamedTuple):
    """An R² and its interval; 1 is perfect, 0 is predicting the mean."""

    r2: float
    low: float
    high: float


class Score(NamedTuple):
    """R² of each hidden entry, their mean, their minimum, and R² of the reward if it varies."""

    entries: tuple[Estimate, ...]
    mean: Estimate
    worst: Estimate
    reward: Estimate | None

    @property
    def worst_entry(self) -> int:
        """The index of the hidden entry with the lowest R²."""
        return int(np.argmin([entry.r2 for entry in self.entries]))


def score(
    y: Float[np.ndarray, "row target"],
    predicted: Float[np.ndarray, "row target"],
    episode: Int[np.ndarray, "row"],
    hidden: int,
    rng: np.random.Generator,
) -> Score:
    """The score of predictions: the first `hidden` targets are hidden entries, one more may be the reward."""
    y, predicted = y.astype(np.float64), predicted.astype(np.float64)
    centred = y - y.mean(0)
    _, number = np.unique(episode, return_inverse=True)
    episodes = int(number.max()) + 1
    counts = np.bincount(number).astype(np.float64)[:, None]
    sums = [_by_episode(column, number, episodes) for column in (centred, centred**2, (y - predicted) ** 2)]
    weights = rng.multinomial(episodes, np.full(episodes, 1 / episodes), size=DRAWS).astype(np.float64)
    (all_of_them,) = _r_squared(np.ones((1, episodes)), counts, *sums)
    draws = _r_squared(weights, counts, *sums)
    draws = draws[np.isfinite(draws).all(axis=1)]

    def estimate(value: float, drawn: np.ndarray) -> Estimate:
        outside = (1 - LEVEL) / 2
        low, high = np.quantile(drawn, [outside, 1 - outside]) if drawn.size else (value, value)
        return Estimate(float(value), float(low), float(high))

    each = tuple(estimate(value, draws[:, i]) for i, value in enumerate(all_of_them))
    ours, drawn = all_of_them[:hidden], draws[:, :hidden]
    return Score(
        entries=each[:hidden],
        mean=estimate(ours.mean(), drawn.mean(axis=1)),
        worst=estimate(ours.min(), drawn.min(axis=1)),
        reward=each[hidden] if len(each) > hidden else None,
    )


def _by_episode(column: np.ndarray, number: np.ndarray, episodes: int) -> Float[np.ndarray, "episode target"]:
    """Sums over the rows of each episode."""
    sums = np.zeros((episodes, column.shape[1]))
    np.add.at(sums, number, column)
    return sums


def _r_squared(
    weights: Float[np.ndarray, "draw episode"],
    counts: Float[np.ndarray, "episode 1"],
    total: Float[np.ndarray, "episode target"],
    squares: Float[np.ndarray, "episode target"],
    errors: Float[np.ndarray, "episode target"],
) -> Float[np.ndarray, "draw target"]:
    """R² of each bootstrap sample of episodes; NaN where a target does not vary in the sample."""
    rows = weights @ counts
    variance = (weights @ squares) / rows - np.square((weights @ total) / rows)
    unexplained = (weights @ errors) / rows
    varies = variance > NO_SPREAD
    return np.where(varies, 1 - unexplained / np.where(varies, variance, 1.0), np.nan)
