"""A simulation that was restored goes on as it did."""

import numpy as np
import pytest

from mulv.envs import make_env
from mulv.envs.simulator_state import lift_time_limits, restore_state, save_state

TASKS = ["HalfCheetah", "Hopper", "Ant", "walker-run", "Pendulum"]


def steps(env, actions):
    """Observations, rewards and ends, as far as the episode goes."""
    found = []
    for action in actions:
        obs, reward, terminated, truncated, _ = env.step(action)
        found.append((obs, reward, terminated, truncated))
        if terminated:
            break
    return found


def equal(one, other):
    assert len(one) == len(other)
    return all(
        np.array_equal(a, b) for x, y in zip(one, other, strict=True) for a, b in zip(x, y, strict=True)
    )


def actions_for(env, number, seed=0):
    rng = np.random.default_rng(seed)
    return rng.uniform(-1, 1, (number, *env.action_space.shape)).astype(np.float32)


@pytest.fixture(params=TASKS)
def begun(request):
    """A task a few steps into an episode."""
    env = make_env(f"{request.param}-F")
    env.reset(seed=3)
    steps(env, actions_for(env, 6, seed=1))
    return env


def test_the_same_actions_have_the_same_consequences_bit_by_bit(begun):
    saved, actions = save_state(begun), actions_for(begun, 15)
    first = steps(begun, actions)
    restore_state(begun, saved)
    assert equal(steps(begun, actions), first)


def test_other_actions_have_others(begun):
    saved, actions = save_state(begun), actions_for(begun, 15)
    first = steps(begun, actions)
    restore_state(begun, saved)
    assert not equal(steps(begun, -actions)[:1], first[:1])


def test_the_saved_state_is_not_moved_by_what_follows(begun):
    saved, actions = save_state(begun), actions_for(begun, 5)
    restore_state(begun, saved)
    first = steps(begun, actions)
    for _ in range(2):
        restore_state(begun, saved)
        assert equal(steps(begun, actions), first)


@pytest.mark.parametrize("name", ["HalfCheetah", "Hopper", "walker-run"])
def test_masked_and_full_environments_restored_from_one_state_have_the_same_rewards(name):
    full, masked = make_env(f"{name}-F"), make_env(f"{name}-P")
    full.reset(seed=0), masked.reset(seed=5)
    steps(full, actions_for(full, 4, seed=1))
    saved, actions = save_state(full), actions_for(full, 10)
    restore_state(masked, saved)
    one, other = steps(full, actions), steps(masked, actions)
    assert [x[1:] for x in one] == [x[1:] for x in other]
    assert one[0][0].shape > other[0][0].shape


@pytest.mark.parametrize(("name", "horizon"), [("Pendulum-F", 200), ("walker-run-F", 500)])
def test_the_time_limit_is_restored_and_can_be_lifted(name, horizon):
    env = make_env(name)
    env.reset(seed=0)
    saved, still = save_state(env), np.zeros((horizon, *env.action_space.shape), np.float32)
    assert [x[3] for x in steps(env, still)] == [False] * (horizon - 1) + [True]
    restore_state(env, saved)
    lift_time_limits(env)
    assert not any(x[3] for x in steps(env, still))
