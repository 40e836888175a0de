"""The inputs of the regressions, made from windows of L observations."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from mulv.run.diagnostics.decodability.collect import Sequences

LIMIT = 10.0  # inputs are clipped at this many standard deviations
AGE_POWER = 0.75  # inputs of k steps ago are multiplied by k^-AGE_POWER: long windows overfit less
SMALL = 1e-6
EVERY_TEST = 5  # every fifth sequence is for testing, the others are for fitting


class Scales(NamedTuple):
    """Mean and standard deviation of observations, and root mean square of their changes."""

    mean: Float[np.ndarray, "obs"]
    obs: Float[np.ndarray, "obs"]
    change: Float[np.ndarray, "obs"]


def held_out(sequences: Sequences) -> Bool[np.ndarray, "batch"]:
    """Mask of the sequences for testing; whole sequences, so that no episode is in both sets."""
    return np.arange(len(sequences.step)) % EVERY_TEST == EVERY_TEST - 1


def scales(sequences: Sequences) -> Scales:
    """The scales of observations, and of changes from one observation to the next, in these sequences."""
    rows, moved = sequences.obs.reshape(-1, sequences.obs.shape[-1]), sequences.step > 0
    change = _changes(sequences)[moved]
    return Scales(rows.mean(0), rows.std(0) + SMALL, np.sqrt(np.square(change).mean(0)) + SMALL)


def window_inputs(sequences: Sequences, by: Scales, L: int) -> Float[np.ndarray, "batch time feature"]:
    """The newest observation, and the L−1 changes, actions and masks before it.

    A mask is 1 where the episode reaches back that far; otherwise mask, change and action are 0. All three
    are multiplied by a weight that falls with their age.
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
    """The column shifted by `back` positions; the first ones wrap around, so callers must mask them."""
    return np.roll(column, back, axis=1)
