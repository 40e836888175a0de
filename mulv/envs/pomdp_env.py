"""A POMDP as a Gymnasium environment; NumPy only."""

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from scipy.sparse import csr_array

from mulv.tabular import zoo
from mulv.tabular.pomdp import POMDP


def make_named(name: str, **parameters: float) -> "POMDPEnv":
    """A POMDP of `mulv/tabular/zoo`, by name."""
    return POMDPEnv(zoo.make(name, **parameters))


class POMDPEnv(gym.Env):
    """A POMDP as an environment. The reward is the expected reward of the state and action.

    If the POMDP has no observation before the first action, `reset` returns an additional one that means
    "none". An episode terminates in a terminal state, or after the POMDP's last decision.
    """

    def __init__(self, pomdp: POMDP):
        self.pomdp = pomdp
        self._nothing = pomdp.observations
        unseen = pomdp.initial_observation is None
        self.action_space = spaces.Discrete(pomdp.actions)
        self.observation_space = spaces.Discrete(pomdp.observations + unseen)
        self._terminal = pomdp.terminal
        self._start = csr_array(pomdp.start[None])
        self._state, self._decisions = 0, 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[int, dict]:
        super().reset(seed=seed)
        first = self.pomdp.initial_observation
        self._state, self._decisions = self._draw(self._start, 0), 0
        return (self._nothing if first is None else self._draw(first, self._state)), {}

    def step(self, action: int) -> tuple[int, float, bool, bool, dict]:
        reward = float(self.pomdp.reward[action, self._state])
        self._state = self._draw(self.pomdp.transition[action], self._state)
        self._decisions += 1
        observation = self._draw(self.pomdp.observation[action], self._state)
        over = bool(self._terminal[self._state]) or self._decisions == self.pomdp.horizon
        return observation, reward, over, False, {}

    @property
    def hidden_state(self) -> int:
        """The state, which agents do not observe."""
        return self._state

    def _draw(self, kernel: csr_array, row: int) -> int:
        """A column drawn from the distribution in `row` of `kernel`."""
        first, last = kernel.indptr[row], kernel.indptr[row + 1]
        sums = np.cumsum(kernel.data[first:last])
        place = np.searchsorted(sums, self.np_random.random() * sums[-1], side="right")
        return int(kernel.indices[first + min(int(place), len(sums) - 1)])
