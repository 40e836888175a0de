"""Aggregates over tasks and seeds that one lucky run cannot carry (Agarwal et al., 2021)."""

from collections.abc import Mapping, Sequence

import numpy as np


def interquartile_mean(scores: np.ndarray) -> float:
    """The mean of the middle half; a score on its edge counts by the part that lies within."""
    ordered = np.sort(np.ravel(scores))
    edges = np.arange(ordered.size + 1) / ordered.size
    weight = np.clip(np.minimum(edges[1:], 0.75) - np.maximum(edges[:-1], 0.25), 0, None)
    return float(weight @ ordered / weight.sum())


def stratified_interval(
    scores: Mapping[str, Sequence[float]], samples: int = 5000, level: float = 0.95, seed: int = 0
) -> tuple[float, float]:
    """Bootstrap interval of the interquartile mean: seeds are redrawn within each task."""
    rng = np.random.default_rng(seed)
    drawn = [
        interquartile_mean(np.concatenate([rng.choice(np.asarray(s), len(s)) for s in scores.values()]))
        for _ in range(samples)
    ]
    low, high = np.quantile(drawn, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)
