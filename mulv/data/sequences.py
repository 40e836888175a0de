"""Where in a replay a sequence may start: at any row that enough rows of its lane (environment) follow.

A sequence may cross the end of an episode. All its rows must be among those that the ring still keeps, so
that none has been overwritten.
"""

import numpy as np

from mulv.core.errors import MulvError


def starts(counts: np.ndarray, capacity: int, length: int) -> tuple[np.ndarray, np.ndarray]:
    """For each lane, the first t at which a sequence may start, and the number of starts from there on."""
    low = np.maximum(counts - capacity, 0)
    return low, np.maximum(counts - length + 1 - low, 0)


def draw_starts(
    counts: np.ndarray, capacity: int, length: int, number: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Lane and t of `number` sequences, drawn uniformly from all possible starts."""
    low, size = starts(counts, capacity, length)
    bounds = np.cumsum(size)
    if not bounds[-1]:
        raise MulvError(
            f"a lane of the replay has {int(np.minimum(counts, capacity).max())} rows and a sequence takes "
            f"{length}; collect more before learning (--learning-starts), or learn from shorter sequences"
        )
    drawn = rng.integers(bounds[-1], size=number)
    lane = np.searchsorted(bounds, drawn, side="right")
    return lane, low[lane] + drawn - (bounds - size)[lane]
