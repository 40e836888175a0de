"""Types that environments use: whole numbers as actions, and what says that an episode has ended."""

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces

from mulv.core.errors import EnvironmentFault
from mulv.envs import adapt
from mulv.envs.preflight import preflight


class Dial(gym.Env):
    """Takes a whole number from 0 to 5, and says what it is told of its end."""

    observation_space = spaces.Box(-1.0, 1.0, (2,), np.float32)
    action_space = spaces.Box(0, 5, (1,), np.int32)
    terminated: Any = False
    truncated: Any = False

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.taken = []
        return np.zeros(2, np.float32), {}

    def step(self, action):
        self.taken.append(action)
        return np.zeros(2, np.float32), 0.0, self.terminated, self.truncated, {}


def taken(unit_action: float) -> np.ndarray:
    env = adapt(Dial())
    env.reset(seed=0)
    env.step(np.array([unit_action], np.float32))
    return env.unwrapped.taken[0]


@pytest.mark.parametrize(
    ("unit_action", "number"), [(-1.0, 0), (-0.81, 0), (-0.79, 1), (0.19, 3), (0.99, 5), (1.0, 5)]
)
def test_an_action_of_whole_numbers_is_the_nearest(unit_action: float, number: int) -> None:
    assert taken(unit_action).tolist() == [number]


def test_an_action_of_whole_numbers_has_its_spaces_type() -> None:
    assert Dial.action_space.contains(taken(0.3))


def test_every_whole_number_is_reached_and_comes_back() -> None:
    env = adapt(Dial())
    for number in range(6):
        np.testing.assert_array_equal(env.action(env.unit(np.array([number]))), [number])


@pytest.mark.parametrize("flag", ["terminated", "truncated"])
@pytest.mark.parametrize("value", [0, 1, None, "no", 0.5, np.array([False])], ids=repr)
def test_an_end_that_is_neither_true_nor_false_is_named(flag: str, value: object) -> None:
    with pytest.raises(EnvironmentFault, match=f"{flag} must be True or False, and step gave"):
        preflight(lambda: adapt(type("Ends", (Dial,), {flag: value})()))


@pytest.mark.parametrize("value", [True, np.True_])
def test_numpys_booleans_are_booleans(value: object) -> None:
    assert preflight(lambda: adapt(type("Ends", (Dial,), {"terminated": value})())).act_dim == 1
