"""Algorithm 1's data collection: the policy up to a random step of an episode, then L uniform actions.

In the paper the episode ends there. Here the policy continues until the episode's own end, because the steps
that follow are useful data too. A lane is the index of an environment in the vector environment.
"""

import numpy as np


class RollIn:
    """Decides for each lane at which steps of its episode actions are uniform."""

    def __init__(self, num_envs: int, length: int, rng: np.random.Generator):
        self._length, self._rng = length, rng
        self._begin = np.zeros(num_envs, np.int64)  # step of the episode at which uniform actions begin
        self._step = np.zeros(num_envs, np.int64)

    def uniform(self, first: np.ndarray, horizon: int) -> np.ndarray:
        """Whether the next action of each lane is uniform.

        `first` marks lanes whose episode begins: for these a step below `horizon` is drawn at random.
        """
        begins = np.flatnonzero(first)
        self._begin[begins] = self._rng.integers(max(horizon, 1), size=begins.size)
        self._step[begins] = 0
        now = (self._begin <= self._step) & (self._step < self._begin + self._length)
        self._step += 1
        return now
