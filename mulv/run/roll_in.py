"""Algorithm 1's data collection: the policy up to a random step of an episode, then L uniform actions.

The text ends an episode there. Here the policy takes over again: environments begin anew only at their own
end, and what follows is data too.
"""

import numpy as np


class RollIn:
    """Which decisions are uniform, lane by lane."""

    def __init__(self, num_envs: int, length: int, rng: np.random.Generator):
        self._length, self._rng = length, rng
        self._begin = np.zeros(num_envs, np.int64)  # step of the episode at which uniform actions begin
        self._step = np.zeros(num_envs, np.int64)

    def uniform(self, first: np.ndarray, horizon: int) -> np.ndarray:
        """For the next decision of every lane; an episode that begins draws its step below `horizon`."""
        begins = np.flatnonzero(first)
        self._begin[begins] = self._rng.integers(max(horizon, 1), size=begins.size)
        self._step[begins] = 0
        now = (self._begin <= self._step) & (self._step < self._begin + self._length)
        self._step += 1
        return now
