"""Alpha vectors in files, and what an agent does that has them."""

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from mulv.core.errors import MulvError
from mulv.tabular import belief
from mulv.tabular.files import AlphaVectors, read_alpha, write_alpha
from mulv.tabular.simulate import simulate
from mulv.tabular.solver import AlphaPolicy, solve
from mulv.tabular.zoo import make
from tests.tabular.support import random_pomdp

numbers = st.floats(allow_nan=False, allow_infinity=False)
shapes = st.tuples(st.integers(1, 5), st.integers(1, 4))


@given(shapes.flatmap(lambda shape: arrays(np.float64, shape, elements=numbers)), st.integers(0, 10**6))
@settings(max_examples=30)
def test_what_is_written_is_read_to_the_last_bit(tmp_path_factory, values, seed):
    actions = np.random.default_rng(seed).integers(0, 12, size=len(values))
    path = tmp_path_factory.mktemp("alpha") / "some.alpha"
    read = read_alpha(write_alpha(AlphaVectors(values, actions), path), states=values.shape[1], actions=12)
    np.testing.assert_array_equal(read.values, values)
    np.testing.assert_array_equal(read.actions, actions)


def test_a_file_of_pomdp_solve_is_read(tmp_path):
    """As it writes them: no sign of a type, any number of spaces and empty lines."""
    path = tmp_path / "tiger.alpha"
    path.write_text("1\n-81.597  28.402 \n\n\n0\n3.01470925 24.6956809\n\n")
    vectors = read_alpha(path)
    np.testing.assert_array_equal(vectors.actions, [1, 0])
    assert vectors.action(np.array([0.0, 1.0])) == 1
    assert vectors.value(np.array([1.0, 0.0])) == 3.01470925


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no alpha vectors"),
        ("left\n1 2\n", "line 1: 'left' is no action"),
        ("0\n1 2\n\n1 2\n", "line 4: '1 2' is no action"),
        ("0\n", "line 1: a vector needs a finite value"),
        ("0\n1 nan\n", "line 2: a vector needs a finite value"),
        ("0\n1 two\n", "line 2: could not convert"),
        ("0\n1 2 3\n", "line 2: 3 values, but there are 2 states"),
        ("7\n1 2\n", "action 7, but the POMDP has 3"),
        ("0\n1 é\n", "not text"),
    ],
)
def test_a_damaged_file_is_told_by_its_line(tmp_path, text, said):
    path = tmp_path / "bad.alpha"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(MulvError, match=said):
        read_alpha(path, states=2, actions=3)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(MulvError, match="cannot be read"):
        read_alpha(tmp_path / "no.alpha")
    with pytest.raises(MulvError, match="cannot be written"):
        write_alpha(AlphaVectors(np.zeros((1, 1)), np.zeros(1, int)), tmp_path / "no" / "no.alpha")


@pytest.mark.parametrize("first", [False, True])
def test_the_policy_acts_by_the_belief_of_what_it_saw(first):
    pomdp = random_pomdp(3, states=4, actions=3, first=first, zeros=0.5)
    rng = np.random.default_rng(0)
    vectors = AlphaVectors(rng.normal(size=(6, 4)), np.array([0, 1, 2, 0, 1, 2]))
    policy = AlphaPolicy.of(pomdp, vectors)
    episodes = simulate(pomdp, policy, episodes=20, key=jax.random.key(0), horizon=8)
    assert len(np.unique(episodes.actions)) == 3
    for o, a in zip(episodes.observations, episodes.actions, strict=True):
        b = belief.initial(pomdp, int(o[0]) if first else None)
        for h in range(8):
            assert a[h] == vectors.action(b)
            b = belief.update(pomdp, b, int(a[h]), int(o[h + 1]))


def test_tigers_policy_earns_its_lower_bound():
    """And another policy, which only listens, does not: the interval is narrow enough to tell."""
    tiger = make("tiger")
    solution = solve(tiger, precision=1e-2, seconds=60)
    vectors = solution.alpha_vectors()
    listen = AlphaVectors(np.zeros((1, 2)), np.zeros(1, int))
    mean, error = {}, {}
    for name, each in {"solved": vectors, "listen": listen}.items():
        policy = AlphaPolicy.of(tiger, each)
        episodes = simulate(tiger, policy, episodes=4000, key=jax.random.key(1), horizon=180)
        returns = episodes.returns(tiger.discount)
        mean[name], error[name] = returns.mean(), returns.std() / len(returns) ** 0.5
    assert error["solved"] < 0.6
    assert abs(mean["solved"] - solution.bounds.lower) < 4 * error["solved"]
    assert mean["listen"] == pytest.approx(-20, abs=0.01)
