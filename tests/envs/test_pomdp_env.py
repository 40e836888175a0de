"""POMDPs as Gymnasium environments: the frame, and that what comes out is what the arrays say."""

import warnings

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import mulv
from mulv.core.errors import MulvError
from mulv.envs import make_env, resolve
from mulv.envs.pomdp_env import POMDPEnv
from mulv.envs.pomdp_ids import IDS, LOCKS
from tests.tabular.support import random_pomdp
from tests.tabular.test_simulate import counts, far_from


@pytest.mark.parametrize("name", IDS)
def test_gymnasium_makes_and_checks_it(name):
    env = gym.make(f"mulv/{IDS[name].id}-v0")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check_env(env.unwrapped, skip_render_check=True)
    assert isinstance(env.action_space, gym.spaces.Discrete)
    assert isinstance(env.observation_space, gym.spaces.Discrete)
    env.close()


@pytest.mark.parametrize(("id_", "parameters"), LOCKS.items())
def test_a_long_locks_name_says_its_size(id_, parameters):
    env = gym.make(f"mulv/{id_}-v0")
    assert id_ == f"Lock-{env.unwrapped.pomdp.horizon}-{env.action_space.n}"
    assert parameters == {"H": env.unwrapped.pomdp.horizon, "actions": env.action_space.n}


def test_frequencies_are_the_arrays():
    """Of every row, by one long walk."""
    pomdp = random_pomdp(3, zeros=0.3)
    T, O = pomdp.dense()  # noqa: E741
    env, rng = POMDPEnv(pomdp), np.random.default_rng(0)
    env.reset(seed=0)
    moves, sights = np.zeros((2, 3, 3), int), np.zeros((2, 3, 3), int)
    for _ in range(20_000):
        s, a = env.hidden_state, int(rng.integers(2))
        o, reward, *_ = env.step(a)
        moves[a, s, env.hidden_state] += 1
        sights[a, env.hidden_state, o] += 1
        assert reward == pomdp.reward[a, s]
    for a in range(2):
        for s in range(3):
            assert far_from(moves[a, s], T[a, s]) < 6
            assert far_from(sights[a, s], O[a, s]) < 6
    assert far_from(moves[0, 0], T[1, 1]) > 20  # and the bound knows one row from another


def test_resets_are_draws_from_the_start():
    pomdp = random_pomdp(4)
    env = POMDPEnv(pomdp)
    env.reset(seed=1)
    drawn = [(env.reset()[0], env.hidden_state) for _ in range(5000)]
    o, s = np.array(drawn).T
    assert far_from(counts(s, 3), pomdp.start) < 6
    assert far_from(counts(o, 3), pomdp.start @ pomdp.initial_observation) < 6


def test_before_the_first_action_nothing_is_an_observation_of_its_own():
    env = gym.make("mulv/Tiger-v0")
    assert env.observation_space.n == 3
    assert env.reset(seed=0)[0] == 2
    assert all(env.step(0)[0] < 2 for _ in range(20))


def test_an_episode_ends_with_the_catch_the_last_decision_or_the_limit():
    tag = gym.make("mulv/Tag-v0").unwrapped
    tag.reset(seed=0)
    tag._state = 31  # in one cell with the opponent
    assert tag.step(4)[1:4] == (10, True, False)
    lock = gym.make("mulv/Lock-v0", H=4, L=2)
    lock.reset(seed=0)
    assert [lock.step(0)[2:4] for _ in range(4)] == [(False, False)] * 3 + [(True, False)]
    tiger = gym.make("mulv/Tiger-v0")
    tiger.reset(seed=0)
    assert [tiger.step(0)[2:4] for _ in range(100)] == [(False, False)] * 99 + [(False, True)]


def test_one_seed_one_episode():
    def episode(seed: int) -> list:
        env = gym.make("mulv/Hallway-v0")
        return [env.reset(seed=seed)[0], *(env.step(1)[:2] for _ in range(30))]

    assert episode(0) == episode(0) != episode(1)


def test_agents_see_a_vector_and_find_it_by_either_name():
    env = make_env("mulv/RockSample-4-4-v0")
    assert env.reset(seed=0)[0].tolist() == [0, 0, 1]
    assert resolve("RockSample-4-4").id == "mulv/RockSample-4-4-v0"
    with pytest.raises(MulvError, match="did you mean 'RockSample-4-4'"):
        resolve("RockSampel-4-4")
    assert mulv.make_env is make_env
