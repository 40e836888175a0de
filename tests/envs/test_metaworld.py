"""Meta-world: arrangements follow the seed, success is recorded, frames are corner2's."""

import functools

import gymnasium as gym
import numpy as np
import pytest

from mulv.core.errors import MulvError
from mulv.envs import PIXEL_TASKS, VectorEnv, gymnasium_id, make_env, register, resolve
from mulv.envs.rendering.gl import find_gl
from mulv.envs.wrappers import ActionRepeat

METAWORLD = {name: task for name, task in PIXEL_TASKS.items() if task.simulator == "metaworld"}
metaworld = pytest.importorskip(
    "metaworld", reason="Meta-world is not installed: pip install 'mulv[metaworld]'"
)


@functools.cache
def simulator(id_: str = "drawer-close-v3") -> gym.Env:
    """Without frames, which are slow to draw."""
    from mulv.envs.metaworld import MetaWorldEnv

    return MetaWorldEnv(id_)


def test_the_fifty_tasks_are_those_that_are_listed():
    from metaworld.env_dict import ALL_V3_ENVIRONMENTS

    assert {task.id for task in METAWORLD.values()} == set(ALL_V3_ENVIRONMENTS)
    assert len(METAWORLD) == 50


def test_every_task_has_a_gymnasium_id_that_leads_back_to_it():
    register()
    for task in METAWORLD.values():
        assert gymnasium_id(task) in gym.registry
        assert resolve(gymnasium_id(task)) is task


def arrangement(seed: int | None) -> np.ndarray:
    obs, _ = simulator().reset(seed=seed)
    return np.concatenate([obs, simulator()._env._target_pos])


def test_the_seed_decides_the_arrangement_whatever_came_before():
    first = arrangement(1)
    for _ in range(3):
        simulator().step(np.ones(4, np.float32))
    other = arrangement(2)
    assert not np.allclose(first, other)
    np.testing.assert_array_equal(arrangement(1), first)


def test_resets_without_a_seed_vary():
    arrangement(1)
    assert not np.allclose(arrangement(None), arrangement(None))


def test_an_episode_is_cut_off_after_five_hundred_steps():
    env = simulator()
    env.reset(seed=0)
    ends = [env.step(np.zeros(4, np.float32))[2:4] for _ in range(500)]
    assert [any(end) for end in ends] == [False] * 499 + [True]
    assert ends[-1] == (False, True)


@pytest.mark.filterwarnings("ignore:Constant")
def test_a_scripted_policy_succeeds_and_idleness_does_not():
    from metaworld.policies import ENV_POLICY_MAP

    policy = ENV_POLICY_MAP["drawer-close-v3"]()
    successes = []
    for acts in (True, False):
        lanes = VectorEnv.of(lambda: ActionRepeat(simulator(), 2), 1, lambda lane, episode: 7)
        lanes.start()
        while not lanes.finished:
            action = policy.get_action(lanes.obs[0]) if acts else np.zeros(4)
            lanes.step(np.clip(action, -1, 1).astype(np.float32)[None])
        assert lanes.finished[0].length == 250
        successes.append(lanes.finished[0].success)
    assert successes == [True, False]


def test_frames_are_those_of_corner2(monkeypatch):
    from gymnasium.envs.mujoco.mujoco_rendering import MujocoRenderer

    try:
        monkeypatch.setenv("MUJOCO_GL", find_gl().backend)
    except MulvError as error:
        pytest.skip(str(error))
    env = make_env("metaworld/drawer-close-px", render_quality="paper")
    frame, _ = env.reset(seed=0)
    inner = env.unwrapped
    for camera, same in (("corner2", True), ("corner", False)):
        other = MujocoRenderer(inner.model, inner.data, width=64, height=64, camera_name=camera)
        difference = np.abs(frame.astype(int) - other.render("rgb_array").astype(int))
        assert (difference.max() <= 1) == same
        other.close()
    moved, *_, info = env.step(np.ones(4, np.float32))
    assert info["success"] is False
    assert not np.array_equal(moved, frame)
    env.close()
