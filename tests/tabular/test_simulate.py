"""Simulated episodes against the arrays they are drawn from."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mulv.core.errors import MulvError
from mulv.tabular.simulate import NO_OBSERVATION, ReactivePolicy, UniformPolicy, simulate
from tests.tabular.support import random_pomdp

MANY = 40_000


def far_from(counts: np.ndarray, probabilities: np.ndarray) -> float:
    """Pearson's χ² per degree of freedom: about one for a fair sample, and infinite for the impossible."""
    expected = counts.sum() * probabilities
    if np.any(counts[expected == 0]):
        return np.inf
    possible = expected > 0
    terms = (counts[possible] - expected[possible]) ** 2 / expected[possible]
    return float(terms.sum() / max(possible.sum() - 1, 1))


def counts(values: np.ndarray, n: int) -> np.ndarray:
    return np.bincount(values.ravel(), minlength=n)


def test_frequencies_are_the_kernels():
    pomdp = random_pomdp(3, zeros=0.3)
    (T, O), first = pomdp.dense(), pomdp.initial_observation.toarray()  # noqa: E741
    episodes = simulate(pomdp, UniformPolicy(2), episodes=MANY, key=jax.random.key(0), horizon=3)
    s, o, a = episodes.states, episodes.observations, episodes.actions
    assert far_from(counts(s[:, 0], 3), pomdp.start) < 6
    assert far_from(counts(a, 2), np.full(2, 0.5)) < 6
    for state in range(3):
        assert far_from(counts(o[:, 0][s[:, 0] == state], 3), first[state]) < 6
        for action in range(2):
            here = (s[:, :-1] == state) & (a == action)
            there = (s[:, 1:] == state) & (a == action)
            assert far_from(counts(s[:, 1:][here], 3), T[action, state]) < 6
            assert far_from(counts(o[:, 1:][there], 3), O[action, state]) < 6
    np.testing.assert_array_equal(episodes.rewards, pomdp.reward[a, s[:, :-1]])


def test_the_bound_on_frequencies_notices_another_kernel():
    pomdp, other = random_pomdp(3), random_pomdp(4)
    episodes = simulate(pomdp, UniformPolicy(2), episodes=MANY, key=jax.random.key(0), horizon=1)
    assert far_from(counts(episodes.states[:, 0], 3), pomdp.start) < 6
    assert far_from(counts(episodes.states[:, 0], 3), other.start) > 100


def test_the_mean_return_is_the_expectation():
    """Of a policy that sees, against a sum over states and observations."""
    pomdp = random_pomdp(5)
    T, O = pomdp.dense()  # noqa: E741
    pi = np.array([[0.9, 0.1], [0.2, 0.8], [0.5, 0.5], [0.0, 1.0]])
    joint = pomdp.start[:, None] * pomdp.initial_observation.toarray()  # P(s_h, o_h)
    expected = 0.0
    for h in range(4):
        state_action = joint @ pi[:3]
        expected += pomdp.discount**h * np.sum(state_action * pomdp.reward.T)
        arrive = np.einsum("sa,ast->at", state_action, T)
        joint = np.einsum("at,ato->to", arrive, O)
    policy = ReactivePolicy(jnp.asarray(pi))
    episodes = simulate(pomdp, policy, episodes=MANY, key=jax.random.key(1), horizon=4)
    returns = episodes.returns(pomdp.discount)
    assert abs(returns.mean() - expected) < 4 * returns.std() / MANY**0.5


def test_a_policy_before_any_observation_is_told_so():
    pomdp = random_pomdp(6, first=False)
    pi = jnp.asarray([[1.0, 0.0]] * 3 + [[0.0, 1.0]])
    episodes = simulate(pomdp, ReactivePolicy(pi), episodes=50, key=jax.random.key(0), horizon=2)
    assert np.all(episodes.observations[:, 0] == NO_OBSERVATION)
    assert np.all(episodes.actions == [1, 0])


def test_one_key_one_set_of_episodes():
    pomdp = random_pomdp(7)
    runs = [
        simulate(pomdp, UniformPolicy(2), episodes=5, key=jax.random.key(k), horizon=8) for k in (0, 0, 1)
    ]
    assert all(np.array_equal(x, y) for x, y in zip(runs[0], runs[1], strict=True))
    assert not np.array_equal(runs[0].states, runs[2].states)


def test_without_a_horizon_it_must_be_told():
    with pytest.raises(MulvError, match="no horizon"):
        simulate(random_pomdp(0), UniformPolicy(2), episodes=1, key=jax.random.key(0))
