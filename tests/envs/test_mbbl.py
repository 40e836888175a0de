"""The older benchmark's rewards and terminations."""

import gymnasium as gym
import numpy as np
import pytest

from tests.envs.test_tasks import get_state, set_state, shared_env


def mbbl_reward(task: str, env: gym.Env, action: np.ndarray) -> float:
    """From the state before the step, in the simulator's units of action."""
    cost = float(np.sum(np.float64(action) ** 2))
    if task == "Pendulum":
        angle, speed = env.unwrapped.state
        return -np.cos(angle) - 0.1 * abs(np.sin(angle)) - 0.1 * speed**2 - 0.001 * cost
    data = env.unwrapped.data
    speed, height = data.qvel[0], data.qpos[2 if task in ("Ant", "Humanoid") else 1]
    if task == "HalfCheetah":
        return speed - 0.1 * cost
    if task == "Humanoid":
        impact = min(0.5e-6 * float(np.sum(data.cfrc_ext**2)), 10.0)
        return 0.25 / 0.015 * speed - 0.1 * cost - impact + 5.0
    return speed - 3.0 * (height - {"Hopper": 1.3, "Walker": 1.3, "Ant": 0.57}[task]) ** 2 - 0.1 * cost + 1.0


@pytest.mark.parametrize("task", ["HalfCheetah", "Hopper", "Walker", "Ant", "Humanoid", "Pendulum"])
def test_mbbl_rewards_follow_their_formula(task):
    env, rng = shared_env(f"{task}-P-mbbl"), np.random.default_rng(0)
    env.reset(seed=0)
    bound = {"Pendulum": 2.0, "Humanoid": 0.4}.get(task, 1.0)
    compared = 0
    for _ in range(4):
        action = rng.uniform(-1, 1, env.action_space.shape).astype(np.float32)
        expected = mbbl_reward(task, env, bound * action)
        _, reward, terminated, _, _ = env.step(action)
        assert reward == pytest.approx(expected, rel=1e-5, abs=1e-5)
        compared += 1
        if terminated:  # the next reward lacks the bonus for being up
            break
    assert compared >= 2


FALLEN = {
    "Hopper": [(1, 0.5), (2, 0.5), (2, -0.5)],
    "Walker": [(1, 0.5), (1, 2.5), (2, 1.5), (2, -1.5)],
    "Ant": [(2, -10.0), (2, 2.0)],  # so deep that one step's contact forces do not lift it back
    "Humanoid": [(2, 0.5), (2, 3.0)],
}


@pytest.mark.parametrize(
    ("task", "at", "value"), [(t, at, v) for t, cases in FALLEN.items() for at, v in cases]
)
def test_mbbl_ends_when_the_body_has_fallen(task, at, value):
    env = shared_env(f"{task}-P-mbbl")
    env.reset(seed=0)
    positions, velocities = get_state(env)
    assert env.step(np.zeros(env.action_space.shape, np.float32))[2] is False
    positions[at] = value
    set_state(env, positions, 0.0 * velocities)
    assert env.step(np.zeros(env.action_space.shape, np.float32))[2] is True


@pytest.mark.parametrize("task", FALLEN)
def test_mbbl_pays_nothing_for_being_up_once_fallen(task):
    env = shared_env(f"{task}-P-mbbl")
    env.reset(seed=0)
    positions, velocities = get_state(env)
    positions[1 if task in ("Hopper", "Walker") else 2] = 0.1
    set_state(env, positions, 0.0 * velocities)
    still = np.zeros(env.action_space.shape, np.float32)
    bonus = 5.0 if task == "Humanoid" else 1.0
    expected = mbbl_reward(task, env, still) - bonus
    assert env.step(still)[1] == pytest.approx(expected, rel=1e-5, abs=1e-5)


def test_mbbl_half_cheetah_never_ends_upside_down():
    env = shared_env("HalfCheetah-P-mbbl")
    env.reset(seed=0)
    positions, velocities = get_state(env)
    positions[2] = np.pi
    set_state(env, positions, velocities)
    assert env.step(np.zeros(6, np.float32))[2] is False


def test_mbbl_pendulum_never_ends_and_pays_for_hanging():
    env = shared_env("Pendulum-P-mbbl")
    rewards = {}
    for where, angle in (("hanging", np.pi), ("upright", 0.0)):
        env.reset(seed=0)
        set_state(env, np.array([angle]), np.zeros(1))
        _, rewards[where], terminated, _, _ = env.step(np.zeros(1, np.float32))
        assert terminated is False
    assert rewards == pytest.approx({"hanging": 1.0, "upright": -1.0})
