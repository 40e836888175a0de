"""The registered tasks: their spaces, what they hide, their rewards, and the names that lead to them."""

import functools
import warnings

import gymnasium as gym
import mujoco
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from mulv.core.errors import MulvError
from mulv.envs import TASKS, gymnasium_id, make_env, register, resolve
from mulv.envs.wrappers import KeepObservation
from mulv.run.config import RunConfig
from mulv.run.train import complete

# Entries of the observation: with velocities hidden, and in full.
OBS_SIZES = {
    "HalfCheetah": (8, 17),
    "Hopper": (5, 11),
    "Walker": (8, 17),
    "Ant": (13, 27),
    "Humanoid": (22 + 130 + 95, 348),
    "Pendulum": (2, 3),
    "MountainCarContinuous": (1, 2),
    "cheetah-run": (8, 17),
    "walker-run": (15, 24),
    "hopper-hop": (8, 15),
    "humanoid-run": (37, 67),
    "pendulum-swingup": (2, 3),
    "cartpole-swingup_sparse": (3, 5),
    "ball_in_cup-catch": (4, 8),
}
EXPECTED = {"Humanoid-P-strict": 22}
for _name, (_hidden, _full) in OBS_SIZES.items():
    EXPECTED |= {f"{_name}-P": _hidden, f"{_name}-F": _full}
    if _name[0].isupper() and _name != "MountainCarContinuous":
        EXPECTED |= {f"{_name}-P-mbbl": _hidden, f"{_name}-F-mbbl": _full}

HIDING = [name for name in TASKS if name.endswith(("-P", "-P-strict", "-P-mbbl"))]


@functools.cache
def shared_env(name: str) -> gym.Env:
    """One environment a task for tests that reset it and set its state themselves."""
    return make_env(name)


def test_the_table_of_sizes_covers_every_task():
    assert set(EXPECTED) == set(TASKS)


@pytest.mark.parametrize("name", TASKS)
def test_tasks_pass_gymnasiums_own_checks(name):
    env = make_env(name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check_env(env, skip_render_check=True)
    assert env.observation_space.contains(env.reset(seed=0)[0])
    env.close()


@pytest.mark.filterwarnings("ignore:.*(is different from the unwrapped version|infinity)")
@pytest.mark.parametrize("name", ["Pendulum-P", "Pendulum-F-mbbl", "HalfCheetah-P", "walker-run-P"])
def test_what_gymnasium_makes_passes_its_checks_rendering_included(name):
    register()
    env = gym.make(gymnasium_id(TASKS[name]))
    check_env(env)
    assert env.metadata["render_modes"] == []  # a display, a GL or pygame may be missing
    env.close()


def test_a_way_to_render_that_was_asked_for_is_promised():
    register()
    env = gym.make("mulv/HalfCheetah-P-v0", render_mode="rgb_array")
    assert (env.render_mode, env.metadata["render_modes"]) == ("rgb_array", ["rgb_array"])
    env.close()


@pytest.mark.parametrize("name", TASKS)
def test_observations_are_float32_vectors_of_the_documented_size(name):
    space = shared_env(name).observation_space
    assert (space.shape, space.dtype) == ((EXPECTED[name],), np.float32)


@pytest.mark.parametrize("name", TASKS)
def test_actions_lie_in_the_unit_box(name):
    space = shared_env(name).action_space
    assert space == gym.spaces.Box(-1.0, 1.0, space.shape, np.float32)


@pytest.mark.parametrize("name", TASKS)
def test_gymnasium_makes_the_same_spaces(name):
    register()
    env = gym.make(gymnasium_id(TASKS[name]), disable_env_checker=True)
    ours = shared_env(name)
    assert (env.observation_space, env.action_space) == (ours.observation_space, ours.action_space)
    env.close()


@pytest.mark.parametrize(
    "name",
    ["Pendulum-P", "Pendulum-P-mbbl", "pendulum-swingup-P", "HalfCheetah-P", "MountainCarContinuous-P"],
)
def test_an_episode_is_cut_off_at_the_horizon(name):
    env = shared_env(name)
    env.reset(seed=0)
    steps, ended = 0, False
    while not ended:
        _, _, terminated, truncated, _ = env.step(np.zeros(env.action_space.shape, np.float32))
        steps, ended = steps + 1, terminated or truncated
    assert (steps * TASKS[name].action_repeat, terminated) == (TASKS[name].horizon, False)


# ---------------------------------------------------------------------------------------- hidden velocities


def get_state(env: gym.Env) -> tuple[np.ndarray, np.ndarray]:
    inner = env.unwrapped
    if hasattr(inner, "physics"):
        return inner.physics.data.qpos.copy(), inner.physics.data.qvel.copy()
    if hasattr(inner, "data"):
        return inner.data.qpos.copy(), inner.data.qvel.copy()
    return np.array(inner.state[:1]), np.array(inner.state[1:])


def set_state(env: gym.Env, positions: np.ndarray, velocities: np.ndarray) -> None:
    inner = env.unwrapped
    if hasattr(inner, "physics"):
        inner.physics.data.qpos[:], inner.physics.data.qvel[:] = positions, velocities
        inner.physics.forward()
    elif hasattr(inner, "data"):
        inner.set_state(positions, velocities)
        mujoco.mj_rnePostConstraint(inner.model, inner.data)  # contact forces, as a step computes them
    else:
        inner.state = np.concatenate([positions, velocities])


def observe(env: gym.Env) -> np.ndarray:
    """What an agent sees of the simulator's present state."""
    inner = env.unwrapped
    if hasattr(inner, "physics"):
        raw = inner.observe()
    else:  # the mountain car has no function for it: it shows its state
        raw = inner._get_obs() if hasattr(inner, "_get_obs") else np.float32(inner.state)
    while not isinstance(env, KeepObservation):
        env = env.env
    return env.observation(raw)


def full_of(name: str) -> str:
    return name.replace("-P", "-F").removesuffix("-strict")


def airborne(env: gym.Env, positions: np.ndarray) -> np.ndarray:
    """Lifted off the ground where there is one: contact forces are kept, and depend on the impact."""
    height = {"Hopper": 1, "Walker2d": 1, "Ant": 2, "Humanoid": 2}
    kind = type(env.unwrapped).__name__.removesuffix("Env")
    positions = positions.copy()
    if kind in height:
        positions[height[kind]] += 3.0
    elif kind == "DMControl" and "rootz" in env.unwrapped.physics.named.data.qpos.axes.row.names:
        env.unwrapped.physics.named.data.qpos["rootz"] += 3.0
        positions = env.unwrapped.physics.data.qpos.copy()
    elif kind == "DMControl" and positions.size == 28:  # the humanoid's free joint
        positions[2] += 3.0
    return positions


def observations_at(name: str, velocity_scale: float, twist: float = 0.0) -> np.ndarray:
    env = shared_env(name)
    env.reset(seed=3)
    positions, velocities = get_state(env)
    positions = airborne(env, positions)
    positions[-1] += twist
    rng = np.random.default_rng(5)
    set_state(env, positions, velocity_scale * rng.normal(size=velocities.shape))
    return observe(env)


@pytest.mark.parametrize("name", HIDING)
def test_hidden_velocities_leave_no_trace(name):
    np.testing.assert_array_equal(observations_at(name, 0.5), observations_at(name, -1.5))


@pytest.mark.parametrize("name", HIDING)
def test_the_full_observation_shows_velocities(name):
    assert not np.allclose(observations_at(full_of(name), 0.5), observations_at(full_of(name), -1.5))


@pytest.mark.parametrize("name", HIDING)
def test_positions_are_seen(name):
    assert not np.allclose(observations_at(name, 0.5), observations_at(name, 0.5, twist=0.2))


# ------------------------------------------------------------------------------------------ names and --keep


@pytest.mark.parametrize(
    ("typo", "meant"),
    [
        ("HalfChetah-P", "HalfCheetah-P"),
        ("halfcheetah-p", "HalfCheetah-P"),
        ("mulv/HalfChetah-P-v0", "HalfCheetah-P"),
        ("acrobot-swingpu", "acrobot-swingup"),
    ],
)
def test_a_typo_gets_the_nearest_name(typo, meant):
    with pytest.raises(MulvError) as error:
        resolve(typo)
    assert repr(meant) in str(error.value)


@pytest.mark.parametrize(
    ("name", "suite", "id_"),
    [
        ("Hopper-P", "gymnasium", "Hopper-v5"),
        ("mulv/Hopper-P-v0", "gymnasium", "Hopper-v5"),
        ("Swimmer-v5", "gymnasium", "Swimmer-v5"),
        ("acrobot-swingup", "dm_control", "acrobot-swingup"),
    ],
)
def test_names_of_every_kind_resolve(name, suite, id_):
    task = resolve(name)
    assert (task.simulator, task.id) == (suite, id_)


def test_keeping_positions_of_any_gymnasium_environment():
    kept, full = make_env("Swimmer-v5", keep="0-2,4"), make_env("Swimmer-v5")
    np.testing.assert_array_equal(kept.reset(seed=0)[0], full.reset(seed=0)[0][[0, 1, 2, 4]])


def test_keeping_names_of_any_suite_task():
    kept = make_env("acrobot-swingup", keep="orientations")
    obs, _ = kept.reset(seed=0)
    np.testing.assert_array_equal(obs, kept.unwrapped.observe()["orientations"])


@pytest.mark.parametrize(
    ("name", "keep", "problem"),
    [
        ("Swimmer-v5", "0-8", "position 8"),
        ("Swimmer-v5", "2-1", "'2-1'"),
        ("Swimmer-v5", "1-2-3", "'1-2-3'"),
        ("Swimmer-v5", "-3", "'-3'"),
        ("Swimmer-v5", ",", "empty"),
        ("Swimmer-v5", "position", "no names"),
        ("acrobot-swingup", "orientation", "'orientations'"),
        ("acrobot-swingup", "zzz", "'zzz'"),
        ("HalfCheetah-P", "0-2", "says itself"),
    ],
)
def test_a_keep_that_cannot_be_is_named(name, keep, problem):
    with pytest.raises(MulvError) as error:
        make_env(name, keep=keep)
    assert problem in str(error.value)


# ------------------------------------------------------------------------------------- seeds, action repeat


def trajectory(env: gym.Env, seed: int, steps: int = 10) -> np.ndarray:
    rng = np.random.default_rng(0)
    rows = [env.reset(seed=seed)[0]]
    for _ in range(steps):
        rows.append(env.step(rng.uniform(-1, 1, env.action_space.shape).astype(np.float32))[0])
    return np.stack(rows)


@pytest.mark.parametrize("name", ["Hopper-P", "cheetah-run-P"])
def test_same_seed_same_trajectory_whatever_came_before(name):
    env = shared_env(name)
    first = trajectory(env, seed=1)
    trajectory(env, seed=2)
    np.testing.assert_array_equal(trajectory(env, seed=1), first)


@pytest.mark.parametrize("name", ["Hopper-P", "cheetah-run-P"])
def test_another_seed_another_trajectory(name):
    env = shared_env(name)
    assert not np.allclose(trajectory(env, seed=1), trajectory(env, seed=2))


def test_repeated_actions_add_up_their_rewards():
    once, thrice = make_env("Swimmer-v5"), make_env("Swimmer-v5", action_repeat=3)
    once.reset(seed=0)
    thrice.reset(seed=0)
    action = np.array([0.5, -0.5], np.float32)
    singles = [once.step(action) for _ in range(3)]
    obs, reward, *_ = thrice.step(action)
    np.testing.assert_array_equal(obs, singles[-1][0])
    assert reward == pytest.approx(sum(single[1] for single in singles))


def test_unit_actions_reach_the_simulators_bounds():
    env = make_env("Pendulum-P")
    env.reset(seed=0)
    env.step(np.array([-1.0], np.float32))
    assert env.unwrapped.last_u == -2.0


def test_dm_controls_actions_are_taken_twice_and_long_tasks_begin_with_more_random_steps():
    for name in ("walker-run-P", "walker-run-F", "cheetah-run", "ball_in_cup-catch-P"):
        complete_ = complete(RunConfig(task=name))
        assert (complete_.action_repeat, complete_.learning_starts) == (2, 5000)
    for name, start in (("HalfCheetah-P", 5000), ("Pendulum-P", 1000), ("Swimmer-v5", 1000)):
        complete_ = complete(RunConfig(task=name))
        assert (complete_.action_repeat, complete_.learning_starts) == (1, start)
    chosen = complete(RunConfig(task="walker-run-P", action_repeat=1, learning_starts=0))
    assert (chosen.action_repeat, chosen.learning_starts) == (1, 0)
