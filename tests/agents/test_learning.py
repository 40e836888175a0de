"""Agents learn what they should, and do not learn what they cannot."""

import gymnasium as gym
import numpy as np
import pytest

from mulv.agents import ALGORITHMS
from mulv.api import _LEARNERS, evaluate_policy
from mulv.nets.trunk import TrunkConfig
from tests.agents.support import SEE_FRAMES

OPTIONS = {
    "batch_size": 64,
    "trunk": TrunkConfig("mlp", 32, 2),
    "learning_starts": 200,
    "learning_rate": 3e-3,
}
SMALL = {"mulv": {"latent": {"dim": 16}, "n_step": 1}, "sac": {}}
# Of vectors; what DrQ-v2 learns from frames is in test_drqv2.py.
LEARNERS = [name for name, algo in ALGORITHMS.items() if not (algo.copies_data or name in SEE_FRAMES)]


class Echo(gym.Env):
    """Pays for repeating the observation of `delay` steps ago; −1/3 a step is what ignorance gets."""

    def __init__(self, delay: int):
        self.observation_space = gym.spaces.Box(-1.0, 1.0, (1,), np.float32)
        self.action_space = gym.spaces.Box(-1.0, 1.0, (1,), np.float32)
        self.delay = delay

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.seen = [self.np_random.uniform(-1, 1, 1).astype(np.float32)]
        return self.seen[-1], {}

    def step(self, action):
        wanted = self.seen[-1 - self.delay] if len(self.seen) > self.delay else np.zeros(1)
        reward = -float(np.square(action - wanted).sum())
        self.seen.append(self.np_random.uniform(-1, 1, 1).astype(np.float32))
        return self.seen[-1], reward, False, len(self.seen) > 20, {}


def final_return(algo: str, delay: int, window: int) -> float:
    agent = _LEARNERS[algo](Echo(delay), window=window, gamma=0.5, **OPTIONS, **SMALL[algo])
    agent.learn(2000)
    agent.close()
    return float(np.mean(evaluate_policy(agent, lambda: Echo(delay), episodes=20).returns)) / 20


@pytest.mark.slow  # the next one asks for more
@pytest.mark.parametrize("algo", LEARNERS)
def test_a_trivial_environment_is_learned(algo: str) -> None:
    assert final_return(algo, delay=0, window=1) > -0.02


@pytest.mark.parametrize("algo", LEARNERS)
def test_memory_is_learned_with_a_window_that_holds_it_and_not_without(algo: str) -> None:
    assert final_return(algo, delay=1, window=2) > -0.05
    assert final_return(algo, delay=1, window=1) < -0.25


@pytest.mark.slow
@pytest.mark.parametrize("algo", LEARNERS)
def test_the_masked_pendulum_is_swung_up(algo: str) -> None:
    agent = _LEARNERS[algo]("Pendulum-P", seed=7, eval_every=0)
    agent.learn(10_000)
    assert np.mean(agent.evaluate(episodes=10).returns) > -300
