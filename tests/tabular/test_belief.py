"""Beliefs against sums over every path of states, one at a time and many at once."""

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import eye_array

from mulv.core.errors import MulvError
from mulv.tabular import belief
from mulv.tabular.pomdp import POMDP
from tests.tabular.support import belief_by_paths, random_pomdp


@given(st.integers(0, 10**6), st.booleans(), st.data())
@settings(max_examples=40)
def test_belief_is_the_posterior_over_paths(seed, first, data):
    pomdp = random_pomdp(seed, first=first, zeros=0.4)
    obs = [data.draw(st.integers(0, 2)) if first else None]
    actions: list[int] = []
    if belief_by_paths(pomdp, obs, actions) is None:
        with pytest.raises(MulvError, match="impossible"):
            belief.initial(pomdp, obs[0])
        return
    b = belief.initial(pomdp, obs[0])
    for _ in range(3):
        np.testing.assert_allclose(b, belief_by_paths(pomdp, obs, actions), atol=1e-12)
        a, o = data.draw(st.integers(0, 1)), data.draw(st.integers(0, 2))
        obs, actions = [*obs, o], [*actions, a]
        if belief_by_paths(pomdp, obs, actions) is None:
            assert belief.observation_probabilities(pomdp, b, a)[o] == 0
            with pytest.raises(MulvError, match="impossible"):
                belief.update(pomdp, b, a, o)
            return
        b = belief.update(pomdp, b, a, o)


@given(st.integers(0, 10**6), st.sampled_from([(1, 3), (5, 1), (40, 5), (600, 2)]))
@settings(max_examples=8)
def test_many_beliefs_equal_one_at_a_time(seed, sizes):
    """Whatever way the actions fall into blocks."""
    batch, actions = sizes
    pomdp = random_pomdp(seed, states=4, actions=actions, zeros=0.5)
    rng = np.random.default_rng(seed)
    b = rng.dirichlet(np.ones(4), size=batch)
    a = np.minimum(rng.geometric(0.6, size=batch) - 1, actions - 1)  # some actions often, some never
    o = rng.integers(3, size=batch)
    got, probability = belief.BeliefFilter(pomdp).update(b, a, o)
    assert got.dtype == np.float64
    for i in range(min(batch, 60)):
        expected = belief.observation_probabilities(pomdp, b[i], a[i])[o[i]]
        np.testing.assert_allclose(probability[i], expected, atol=1e-14)
        if expected > 0:
            np.testing.assert_allclose(got[i], belief.update(pomdp, b[i], a[i], o[i]), atol=1e-12)
        else:
            assert not np.any(got[i])


def test_a_whole_trajectory_is_the_steps_one_by_one():
    pomdp, rng = random_pomdp(1), np.random.default_rng(0)
    filter_ = belief.BeliefFilter(pomdp)
    b = filter_.initial(np.array([0, 2, 1, 1]))
    a, o = rng.integers(2, size=(4, 6)), rng.integers(3, size=(4, 6))
    beliefs, probabilities = filter_.along(b, a, o)
    assert beliefs.shape == (4, 6, 3)
    for h in range(6):
        b, p = filter_.update(b, a[:, h], o[:, h])
        np.testing.assert_allclose(beliefs[:, h], b, atol=1e-14)
        np.testing.assert_allclose(probabilities[:, h], p, atol=1e-14)


def test_first_beliefs_with_and_without_a_first_observation():
    seen, unseen = random_pomdp(2), random_pomdp(2, first=False)
    np.testing.assert_array_equal(belief.BeliefFilter(unseen).initial(batch=3), [unseen.start] * 3)
    with pytest.raises(MulvError, match="first observation"):
        belief.initial(seen)
    with pytest.raises(MulvError, match="first observation"):
        belief.initial(unseen, 0)


def test_float64_stays_in_the_room():
    assert belief.BeliefFilter(random_pomdp(0)).update(np.eye(3), np.zeros(3, int), np.zeros(3, int))
    assert jnp.ones(2).dtype == jnp.float32


def test_kernels_too_large_for_memory_are_refused():
    n = 20_000
    pomdp = POMDP((eye_array(n),), (np.ones((n, 1)),), np.zeros((1, n)), np.full(n, 1 / n), 0.9)
    with pytest.raises(MulvError, match="20000 states are too many"):
        belief.BeliefFilter(pomdp)
    np.testing.assert_allclose(belief.update(pomdp, pomdp.start, 0, 0), pomdp.start)


@pytest.mark.parametrize(("a", "o", "what"), [(2, 0, "action"), (-1, 0, "action"), (0, 3, "observation")])
def test_an_index_that_is_none_is_refused(a, o, what):
    filter_ = belief.BeliefFilter(random_pomdp(0))
    with pytest.raises(MulvError, match=f"an {what} from"):
        filter_.update(np.eye(3)[:1], np.array([a]), np.array([o]))
