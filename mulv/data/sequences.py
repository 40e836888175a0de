"""Where in a replay a sequence may begin: at any row that so many others of its lane follow.

An episode's end does not bound a sequence, the ring does: all its rows are among those that are kept, so that
none lies behind the write head, where the ring holds rows of long ago.
"""

import numpy as np

from mulv.core.errors import MulvError


def starts(counts: np.ndarray, capacity: int, length: int) -> tuple[np.ndarray, np.ndarray]:
    """Per lane, the first t that a sequence may begin at, and how many rows from there it may."""
    low = np.maximum(counts - capacity, 0)
    return low, np.maximum(counts - length + 1 - low, 0)


def draw_starts(
    counts: np.ndarray, capacity: int, length: int, number: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Lane and t of so many sequences, each drawn uniformly from all there are."""
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
