"""What a window of L observations shows of its position: the inputs of the regressions."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from mulv.run.diagnostics.decodability.collect import Sequences

LIMIT = 10.0  # inputs beyond so many standard deviations are cut off
AGE_POWER = 0.75  # inputs of k steps ago are multiplied by k^-AGE_POWER: long windows overfit less
SMALL = 1e-6
EVERY_TEST = 5  # one sequence of so many is tested on, the others are fitted on


class Scales(NamedTuple):
    """What observations and their changes are divided by."""

    mean: Float[np.ndarray, "obs"]
    obs: Float[np.ndarray, "obs"]
    change: Float[np.ndarray, "obs"]


def held_out(sequences: Sequences) -> Bool[np.ndarray, "batch"]:
    """Which sequences are for testing; whole sequences, so that no episode is on both sides."""
    return np.arange(len(sequences.step)) % EVERY_TEST == EVERY_TEST - 1


def scales(sequences: Sequences) -> Scales:
    """Means and standard deviations of the observations, and those of the changes from one to the next."""
    rows, moved = sequences.obs.reshape(-1, sequences.obs.shape[-1]), sequences.step > 0
    change = _changes(sequences)[moved]
    return Scales(rows.mean(0), rows.std(0) + SMALL, np.sqrt(np.square(change).mean(0)) + SMALL)


def window_inputs(sequences: Sequences, by: Scales, L: int) -> Float[np.ndarray, "batch time feature"]:
    """The newest observation, and the L−1 changes, actions and marks before it.

    A mark is 1 where the window reaches back so far within its episode, and 0 where the episode begins later:
    change and action are zero there. All three weigh less the older they are.
    """
    obs = np.clip((sequences.obs - by.mean) / by.obs, -LIMIT, LIMIT)
    change = np.clip(_changes(sequences) / by.change, -LIMIT, LIMIT)
    parts = [obs]
    for back in range(L - 1):
        weight = (1 + back) ** -AGE_POWER * (sequences.step > back)[..., None]
        parts += [weight * _earlier(change, back), weight * _earlier(sequences.actions, back), weight]
    return np.concatenate(parts, axis=-1).astype(np.float32)


def _changes(sequences: Sequences) -> Float[np.ndarray, "batch time obs"]:
    """o_h − o_{h−1}, zero where an episode begins."""
    change = sequences.obs - _earlier(sequences.obs, 1)
    return np.where((sequences.step > 0)[..., None], change, 0)


def _earlier(column: np.ndarray, back: int) -> np.ndarray:
    """The value so many positions before; before a sequence's first it means nothing, and callers mask it."""
    return np.roll(column, back, axis=1)
