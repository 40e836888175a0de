"""Returns against loops over their definitions; distributions over bins against their means."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from mulv.core.errors import MulvError
from mulv.core.targets import (
    Bins,
    cross_entropy,
    lambda_returns,
    n_step_return,
    project_distribution,
    symexp,
    symlog,
)

EVEN = Bins(-5.0, 5.0, 51)
UNEVEN = Bins(-3.0, 10.0, 65, symlog_spaced=True)
GAMMA = 0.9


def steps(length: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rewards, discounts with a termination in the middle, and values of what each step led to."""
    rewards, values = np.random.default_rng(seed).normal(size=(2, length)).astype(np.float32)
    discounts = np.full(length, GAMMA, np.float32)
    discounts[length // 2] = 0.0
    return rewards, discounts, values


def naive_n_step(rewards, discounts, values, start: int, number: int) -> float:
    """Σ_{i<n} (Π_{j<i} d_j) r_i + (Π_{j<n} d_j) V, term by term."""
    total, weight = 0.0, 1.0
    for i in range(start, start + number):
        total += weight * rewards[i]
        weight *= discounts[i]
    return total + weight * values[start + number - 1]


def naive_lambda(rewards, discounts, values, lambda_: float) -> list[float]:
    """(1 − λ) Σ_{n<N} λ^{n−1} G^{(n)} + λ^{N−1} G^{(N)}: the definition, a mixture of n-step returns."""
    returns = []
    for start in range(len(rewards)):
        last = len(rewards) - start
        each = [naive_n_step(rewards, discounts, values, start, n) for n in range(1, last + 1)]
        mixed = (1 - lambda_) * sum(lambda_ ** (n - 1) * g for n, g in enumerate(each[:-1], start=1))
        returns.append(mixed + lambda_ ** (last - 1) * each[-1])
    return returns


@pytest.mark.parametrize("number", [1, 2, 3, 4, 7])
def test_an_n_step_return_is_its_sum(number):
    rewards, discounts, values = (a[:number] for a in steps(7))
    got = n_step_return(jnp.asarray(rewards), jnp.asarray(discounts), jnp.asarray(values[-1]))
    assert float(got) == pytest.approx(naive_n_step(rewards, discounts, values, 0, number), abs=1e-5)


def test_nothing_after_a_termination_reaches_an_n_step_return():
    rewards, discounts = jnp.array([1.0, 2.0, 4.0]), jnp.array([GAMMA, 0.0, GAMMA])
    by_reward, by_bootstrap = jax.grad(n_step_return, (0, 2))(rewards, discounts, jnp.float32(100.0))
    np.testing.assert_allclose(by_reward, [1.0, GAMMA, 0.0])
    assert by_bootstrap == 0
    assert float(n_step_return(rewards, discounts, jnp.float32(100.0))) == pytest.approx(1 + 2 * GAMMA)


@given(st.integers(1, 9), st.floats(0, 1), st.integers(0, 99))
@settings(max_examples=20)
def test_lambda_returns_are_the_mixture_of_n_step_returns(length, lambda_, seed):
    arrays = steps(length, seed)
    got = lambda_returns(*map(jnp.asarray, arrays), lambda_)
    np.testing.assert_allclose(got, naive_lambda(*arrays, lambda_), rtol=1e-4, atol=1e-4)


def test_lambda_0_is_one_step_and_lambda_1_is_all_of_them():
    rewards, discounts, values = map(jnp.asarray, steps(9))
    one = lambda_returns(rewards, discounts, values, 0.0)
    np.testing.assert_allclose(one, rewards + discounts * values, rtol=1e-6)
    every = lambda_returns(rewards, discounts, values, 1.0)
    expected = [n_step_return(rewards[i:], discounts[i:], values[-1]) for i in range(9)]
    np.testing.assert_allclose(every, expected, rtol=1e-5, atol=1e-6)


def test_the_value_at_a_position_is_that_of_what_its_step_led_to():
    """One step later or earlier would show: each value has its own share in the first return."""
    ones, values = jnp.full(3, GAMMA), jnp.array([1.0, 10.0, 100.0])
    got = lambda_returns(jnp.zeros(3), ones, values, 0.5)[0]
    assert float(got) == pytest.approx(0.5 * GAMMA + 0.25 * GAMMA**2 * 10 + 0.25 * GAMMA**3 * 100)


def test_before_a_termination_returns_are_blind_to_what_comes_after():
    rewards, discounts, values = map(jnp.asarray, steps(8))  # terminated by the step at 4
    slope = jax.jacobian(lambda_returns, (0, 2))(rewards, discounts, values, 0.95)
    for by in slope:
        assert not np.any(np.asarray(by)[:5, 5:])
    by_reward, by_value = (np.asarray(by) for by in slope)
    assert (by_value[:4, 3] != 0).all()
    assert not np.any(by_value[:, 4])  # nor is the terminal observation's value ever used
    assert (by_reward[:5, 4] != 0).all()


def test_a_sequence_across_a_cut_off_gives_each_episode_its_own_returns():
    """Rows as in `SequenceBatch`: the first episode is cut off at row 3, the second terminates at row 7."""
    rng = np.random.default_rng(0)
    reward, value = rng.normal(size=(2, 8)).astype(np.float32)
    first, terminated = np.zeros(8, bool), np.zeros(8, bool)
    first[[0, 4]], terminated[7] = True, True
    discount = np.float32(GAMMA) * ~terminated
    cut_off = np.append(first[2:], False) & ~terminated[1:]
    lambdas = np.where(cut_off, 0.0, 0.95).astype(np.float32)
    got = lambda_returns(*(jnp.asarray(a[1:]) for a in (reward, discount, value)), jnp.asarray(lambdas))
    before = naive_lambda(reward[1:4], discount[1:4], value[1:4], 0.95)
    after = naive_lambda(reward[5:], discount[5:], value[5:], 0.95)
    np.testing.assert_allclose(got[:3], before, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(got[4:], after, rtol=1e-5, atol=1e-5)
    one_lambda = lambda_returns(*(jnp.asarray(a[1:]) for a in (reward, discount, value)), 0.95)
    assert abs(float(one_lambda[0]) - before[0]) > 1e-3


def test_a_batch_of_returns_is_each_by_itself():
    many = [jnp.stack(a) for a in zip(*(map(jnp.asarray, steps(6, seed)) for seed in range(4)), strict=True)]
    got = jax.vmap(lambda_returns, (0, 0, 0, None))(*many, 0.8)
    expected = [lambda_returns(*(a[i] for a in many), 0.8) for i in range(4)]
    np.testing.assert_allclose(got, jnp.stack(expected), rtol=1e-6)


@given(st.floats(-1e6, 1e6, width=32))
def test_symexp_undoes_symlog(x):
    assert float(symexp(symlog(jnp.float32(x)))) == pytest.approx(x, rel=1e-4, abs=1e-6)
    assert float(symlog(jnp.float32(x))) == pytest.approx(np.sign(x) * np.log1p(abs(x)), rel=1e-5)


@pytest.mark.parametrize("x", [-3.0, 0.0, 3.0])
def test_symlog_and_symexp_have_their_slopes_at_zero_too(x):
    assert float(jax.grad(symlog)(x)) == pytest.approx(1 / (1 + abs(x)))
    assert float(jax.grad(symexp)(x)) == pytest.approx(np.exp(abs(x)), rel=1e-5)


def test_bins_include_both_ends_and_symlogs_are_evenly_spaced():
    np.testing.assert_allclose(EVEN.centres, np.linspace(-5, 5, 51), atol=1e-6)
    np.testing.assert_allclose(symlog(UNEVEN.centres), np.linspace(-3, 10, 65), atol=1e-5)


@pytest.mark.parametrize(("low", "high", "number"), [(1.0, 1.0, 5), (2.0, 1.0, 5), (0.0, 1.0, 1)])
def test_bins_that_are_none_are_refused(low, high, number):
    with pytest.raises(MulvError, match=str(number)):
        Bins(low, high, number)


def test_equal_probabilities_on_symmetric_bins_have_a_mean_of_zero():
    """Added from one end to the other it would be of order 1: the outermost values are of order 1e8."""
    bins = Bins(-20.0, 20.0, 255, symlog_spaced=True)
    for mean in (bins.mean, jax.jit(bins.mean)):
        assert float(mean(jnp.full(255, 1 / 255))) == pytest.approx(0.0, abs=1e-6)


@pytest.mark.parametrize("bins", [EVEN, UNEVEN])
@given(share=st.floats(0, 1))
@settings(max_examples=30)
def test_two_hot_has_the_mean_x_on_two_neighbours(bins, share):
    low, high = symlog(bins.centres[jnp.array([0, -1])])
    x = jnp.clip(symexp(low + share * (high - low)), bins.centres[0], bins.centres[-1])
    p = np.asarray(bins.two_hot(x))
    assert float(bins.mean(jnp.asarray(p))) == pytest.approx(float(x), rel=1e-5, abs=1e-5)
    assert p.sum() == pytest.approx(1.0, abs=1e-6)
    assert (p >= 0).all()
    used = np.flatnonzero(p)
    assert len(used) <= 2
    assert used[-1] - used[0] <= 1


@pytest.mark.parametrize("bins", [EVEN, UNEVEN])
@pytest.mark.parametrize("i", [0, 1, 20, -1])
def test_two_hot_of_a_bins_own_value_is_that_bin(bins, i):
    p = bins.two_hot(bins.centres[i])
    np.testing.assert_allclose(p, np.eye(bins.number)[i], atol=1e-6)


@pytest.mark.parametrize("project", [Bins.two_hot, Bins.hl_gauss])
@pytest.mark.parametrize("bins", [EVEN, UNEVEN])
def test_what_lies_beyond_an_end_is_taken_for_that_end(project, bins):
    for x, end in ((-1e8, 0), (1e8, -1)):
        p = project(bins, jnp.float32(x))
        np.testing.assert_allclose(p, project(bins, bins.centres[end]), atol=1e-5)
        assert int(jnp.argmax(p)) == end % bins.number


@pytest.mark.parametrize("sigma", [0.5, 0.75, 2.0])
@given(share=st.floats(0, 1))
@settings(max_examples=20)
def test_hl_gauss_has_the_mean_x_away_from_the_ends(sigma, share):
    width = 0.2
    margin = (4 * sigma + 0.5) * width  # beyond which the Gaussian has next to nothing
    x = jnp.float32(-5 + margin + share * (10 - 2 * margin))
    p = EVEN.hl_gauss(x, sigma)
    assert float(EVEN.mean(p)) == pytest.approx(float(x), abs=0.01 * width)
    spread = float(jnp.sum(p * (EVEN.centres - x) ** 2)) ** 0.5
    assert spread == pytest.approx(width * (sigma**2 + 1 / 12) ** 0.5, rel=0.02)  # 1/12: of a bin itself


@pytest.mark.parametrize("bins", [EVEN, UNEVEN])
@given(x=st.floats(-1e5, 1e5, width=32))
@settings(max_examples=20)
def test_hl_gauss_gives_probabilities(bins, x):
    p = np.asarray(bins.hl_gauss(jnp.float32(x)))
    assert p.sum() == pytest.approx(1.0, abs=1e-5)
    assert (p >= 0).all()


def test_hl_gauss_is_the_mass_around_every_value():
    centres, width = np.linspace(-5, 5, 51), 0.2
    mass = [norm.cdf(c + 0.1, 4.9, 0.75 * width) - norm.cdf(c - 0.1, 4.9, 0.75 * width) for c in centres]
    expected = np.array(mass) / np.sum(mass)
    np.testing.assert_allclose(EVEN.hl_gauss(jnp.float32(4.9)), expected, atol=1e-5)


def test_hl_gauss_of_uneven_bins_is_a_gaussian_of_the_symlog():
    p = UNEVEN.hl_gauss(jnp.float32(50.0))
    mean = float(jnp.sum(p * jnp.linspace(-3, 10, 65)))
    assert mean == pytest.approx(np.log1p(50.0), abs=1e-3)


def test_cross_entropy_is_least_at_the_target_and_its_gradient_is_the_difference():
    target = EVEN.hl_gauss(jnp.float32(1.3))
    logits = jnp.float32(np.random.default_rng(0).normal(size=51))
    p, q = np.asarray(target, np.float64), np.asarray(jax.nn.softmax(logits), np.float64)
    assert float(cross_entropy(logits, target)) == pytest.approx(-np.sum(p * np.log(q)), rel=1e-5)
    np.testing.assert_allclose(jax.grad(cross_entropy)(logits, target), q - p, atol=1e-6)
    np.testing.assert_allclose(jax.grad(cross_entropy)(jnp.log(target + 1e-30), target), 0.0, atol=1e-6)


def naive_projection(bins: Bins, probabilities: np.ndarray, reward: float, discount: float) -> np.ndarray:
    """C51's algorithm (Bellemare et al. 2017), value by value; bins evenly spaced."""
    projected, width = np.zeros(bins.number), (bins.high - bins.low) / (bins.number - 1)
    for j in range(bins.number):
        moved = np.clip(reward + discount * (bins.low + j * width), bins.low, bins.high)
        b = (moved - bins.low) / width
        lower = min(int(np.floor(b)), bins.number - 2)
        projected[lower] += probabilities[j] * (lower + 1 - b)
        projected[lower + 1] += probabilities[j] * (b - lower)
    return projected


@given(st.floats(-12, 12), st.sampled_from([0.0, 0.5, 0.99, 1.0]), st.integers(0, 99))
@settings(max_examples=20)
def test_the_projection_is_c51s(reward, discount, seed):
    p = np.random.default_rng(seed).dirichlet(np.ones(51))
    got = project_distribution(EVEN, jnp.float32(p), jnp.float32(reward), jnp.float32(discount))
    np.testing.assert_allclose(got, naive_projection(EVEN, p, reward, discount), atol=1e-5)
    assert float(jnp.sum(got)) == pytest.approx(1.0, abs=1e-5)


@pytest.mark.parametrize("bins", [EVEN, UNEVEN])
def test_the_projection_keeps_the_mean_inside_the_range(bins):
    p = jnp.float32(np.random.default_rng(0).dirichlet(np.ones(bins.number)))
    for reward, discount in ((0.3, 0.9), (-0.2, 0.95), (1.0, 0.0)):
        got = project_distribution(bins, p, jnp.float32(reward), jnp.float32(discount))
        assert float(bins.mean(got)) == pytest.approx(reward + discount * float(bins.mean(p)), rel=1e-4)


def test_a_terminated_step_projects_onto_its_reward():
    p = jnp.float32(np.random.default_rng(0).dirichlet(np.ones(51)))
    got = project_distribution(EVEN, p, jnp.float32(1.25), jnp.float32(0.0))
    np.testing.assert_allclose(got, EVEN.two_hot(jnp.float32(1.25)), atol=1e-6)


def test_a_batch_of_projections_is_each_by_itself():
    p = jnp.float32(np.random.default_rng(0).dirichlet(np.ones(51), size=3))
    reward, discount = jnp.array([0.1, -2.0, 9.0]), jnp.array([0.9, 0.0, 0.99])
    got = jax.vmap(project_distribution, (None, 0, 0, 0))(EVEN, p, reward, discount)
    for i in range(3):
        np.testing.assert_allclose(
            got[i], project_distribution(EVEN, p[i], reward[i], discount[i]), atol=1e-6
        )
