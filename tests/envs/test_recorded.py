"""Recordings in a simulator's own spaces become what the task's wrappers would have shown."""

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces

from mulv.core.errors import MulvError
from mulv.envs import adapt, make_env
from mulv.envs.recorded import alike, flatten_many, translation
from mulv.envs.wrappers import KeepObservation, UnitAction

BOX = spaces.Box(-np.inf, np.inf, (2, 3), np.float64)
SPACES = [
    BOX,
    spaces.Discrete(4),
    spaces.Discrete(3, start=-1),
    spaces.MultiDiscrete([2, 3], start=[1, 0]),
    spaces.MultiBinary(3),
    spaces.Dict({"b": spaces.Discrete(2), "a": BOX, "c": spaces.Box(-1, 1, (), np.float32)}),
    spaces.Tuple([spaces.Discrete(2), BOX]),
]


def stacked(samples: list[Any]) -> Any:
    """Many values as Minari keeps them: leaves lead with time."""
    if isinstance(samples[0], dict):
        return {name: stacked([sample[name] for sample in samples]) for name in samples[0]}
    if isinstance(samples[0], tuple):
        return tuple(stacked([sample[i] for sample in samples]) for i in range(len(samples[0])))
    return np.asarray(samples)


@pytest.mark.parametrize("space", SPACES, ids=str)
def test_flattening_many_equals_flattening_each(space: spaces.Space) -> None:
    space.seed(0)
    samples = [space.sample() for _ in range(5)]
    each = np.stack([np.asarray(spaces.flatten(space, sample), np.float32) for sample in samples])
    np.testing.assert_array_equal(flatten_many(space, stacked(samples)), each)


class Blank(gym.Env):
    """Spaces without a world."""

    def __init__(self, observation: spaces.Space, action: spaces.Space):
        self.observation_space, self.action_space = observation, action


PARTS = spaces.Dict(
    {
        "position": spaces.Box(-1, 1, (2,), np.float64),
        "a_velocity": spaces.Box(-9, 9, (3,), np.float64),
        "touch": spaces.Discrete(2),
    }
)
BODY = spaces.Box(-9, 9, (5,), np.float64)
TORQUE = spaces.Box(np.array([-2, 0], np.float32), np.array([2, 5], np.float32))


@pytest.mark.parametrize(
    ("space", "keep"),
    [
        (BODY, None),
        (BODY, (3, 0)),
        (PARTS, None),
        (PARTS, ("touch", "position")),
        (PARTS, ("a_velocity",)),
        (PARTS, (0, 4, 6)),
    ],
)
def test_recordings_of_the_simulator_are_masked_and_scaled_as_the_task_does(space, keep) -> None:
    env = adapt(Blank(space, TORQUE), keep)
    space.seed(1)
    TORQUE.seed(1)
    seen, scaled = env.env, env
    assert isinstance(seen, KeepObservation)
    assert isinstance(scaled, UnitAction)
    observed = [space.sample() for _ in range(4)]
    shown = translation(env, space, TORQUE, "data")
    np.testing.assert_array_equal(shown.obs(stacked(observed)), np.stack([*map(seen.observation, observed)]))
    taken = np.stack([TORQUE.sample() for _ in range(4)])
    np.testing.assert_allclose(
        np.stack([*map(scaled.action, shown.actions(taken))]), taken, rtol=1e-6, atol=1e-6
    )


def test_recordings_of_the_task_itself_stay_as_they_are() -> None:
    env = make_env("Pendulum-P")
    shown = translation(env, env.observation_space, env.action_space, "data")
    obs, actions = np.array([[0.5, 0.25]], np.float32), np.array([[0.75]], np.float32)
    np.testing.assert_array_equal(shown.obs(obs), obs)
    np.testing.assert_array_equal(shown.actions(actions), actions)
    native = translation(env, env.unwrapped.observation_space, env.unwrapped.action_space, "data")
    np.testing.assert_array_equal(native.actions(actions), actions / 2)  # its torque goes to 2


def test_discrete_actions_become_vectors() -> None:
    env = adapt(Blank(BODY, spaces.Discrete(3)))
    shown = translation(env, BODY, spaces.Discrete(3), "data")
    np.testing.assert_array_equal(shown.actions(np.array([2, 0])), [[0, 0, 1], [1, 0, 0]])


@pytest.mark.parametrize(
    ("observation", "action", "line"),
    [
        (spaces.Box(-1, 1, (4,)), TORQUE, r"data has observations \(4,\) .* simulator gives \(5,\)"),
        (PARTS, TORQUE, "data has observations {"),
        (BODY, spaces.Box(-1, 1, (3,)), r"data has actions \(3,\) in \[-1, 1\]; .* takes \(2,\)"),
        (BODY, spaces.Box(-3, 3, (2,)), r"data has actions \(2,\) in \[-3, 3\]"),
        (BODY, spaces.Discrete(2), r"data has actions Discrete\(2\)"),
    ],
)
def test_other_spaces_are_refused(observation, action, line) -> None:
    with pytest.raises(MulvError, match=line):
        translation(adapt(Blank(BODY, TORQUE), (0, 1, 2)), observation, action, "data")


def test_values_that_break_their_own_space_are_refused() -> None:
    shown = translation(adapt(Blank(BODY, TORQUE), (0, 1)), BODY, TORQUE, "data")
    with pytest.raises(MulvError, match=r"shape \(6,\), where its own space says \(5,\)"):
        shown.obs(np.zeros((4, 6)))
    with pytest.raises(MulvError, match=r"shape \(1,\)"):
        shown.actions(np.zeros((4, 1)))  # would broadcast


def test_alike_looks_at_parts_and_shapes_alone() -> None:
    assert alike(BODY, spaces.Box(-1, 1, (5,), np.float32))
    assert not alike(BODY, spaces.Box(-9, 9, (6,), np.float64))
    assert not alike(PARTS, spaces.Dict({"position": PARTS["position"]}))
    assert not alike(spaces.Tuple([BODY]), spaces.Tuple([BODY, BODY]))
    assert not alike(BODY, PARTS)
