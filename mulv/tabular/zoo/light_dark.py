"""A corridor with one lamp, after the light-dark domain of Platt et al. (2010), in whole steps."""

import numpy as np

from mulv.tabular.pomdp import POMDP
from mulv.tabular.zoo.kernels import points


def light_dark(size: int = 21, goal: int = 5, light: int = 15) -> POMDP:
    """Stop at the goal for ten; anywhere else it costs ten. A step costs one and cannot leave the corridor.

    The position is read with an error that grows with the distance from the light, and is exact under it: one
    who starts in the dark does well to walk away from the goal first. The last state is the end.
    """
    x = np.arange(size)
    spread = np.maximum(np.abs(x - light) / np.sqrt(2), 1e-3)
    read = _bell((x - x[:, None]) / spread[:, None])
    read = np.vstack([read / read.sum(axis=1, keepdims=True), x == goal])
    likely = _bell((x - (goal + light) / 2) / (size / 6))
    walks = [points([*np.clip(x + step, 0, size - 1), size], size + 1) for step in (-1, 1)]
    return POMDP(
        transition=(*walks, points([size] * (size + 1), size + 1)),
        observation=(read,) * 3,
        reward=np.stack([*[np.append(np.full(size, -1), 0)] * 2, np.append(np.where(x == goal, 10, -10), 0)]),
        start=np.append(likely / likely.sum(), 0),
        discount=0.95,
        initial_observation=read,
        state_names=(*(f"x{i}" for i in x), "end"),
        action_names=("left", "right", "stop"),
        observation_names=tuple(f"read{i}" for i in x),
    )


def _bell(z: np.ndarray) -> np.ndarray:
    """A normal density up to its scale."""
    return np.exp(-(z**2) / 2)
