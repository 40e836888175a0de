"""The latent variable model and the bonus: EM, closed forms, naive solves."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mulv.tabular.learner.bonus import elliptical_bonus
from mulv.tabular.learner.latent_model import Factors, em_step, first_guess, fit, log_likelihood
from mulv.tabular.precision import in_float64

SEEDS = st.integers(0, 2**32 - 1)
PAIRS, OUTCOMES = 7, 4
step_of, likelihood_of = eqx.filter_jit(em_step), eqx.filter_jit(log_likelihood)
bonus_of, fit_of = eqx.filter_jit(elliptical_bonus), eqx.filter_jit(fit)


def random_counts(rng: np.random.Generator) -> np.ndarray:
    """Some outcomes never occur, and some pairs have no data."""
    return rng.poisson(rng.gamma(0.5, 3.0, size=(PAIRS, OUTCOMES))).astype(float)


def climb(factors: Factors, counts: jax.Array, steps: int) -> np.ndarray:
    """The log-likelihood before and after each EM step."""
    heights = [float(likelihood_of(factors, counts))]
    for _ in range(steps):
        factors = step_of(factors, counts)
        heights.append(float(likelihood_of(factors, counts)))
    return np.array(heights)


@settings(max_examples=30)
@given(SEEDS)
@in_float64
def test_em_never_lowers_the_likelihood(seed: int) -> None:
    rng = np.random.default_rng(seed)
    counts = jnp.asarray(random_counts(rng))
    start = Factors(
        jnp.asarray(rng.dirichlet(np.ones(3), size=PAIRS)),
        jnp.asarray(rng.dirichlet(np.ones(OUTCOMES), size=3)),
    )
    heights = climb(start, counts, 12)
    assert np.all(np.diff(heights) >= -1e-9)


@in_float64
def test_em_comes_to_the_frequencies_with_latents_enough_and_not_with_too_few() -> None:
    counts = np.random.default_rng(0).integers(1, 20, size=(PAIRS, OUTCOMES)).astype(float)
    frequency = counts / counts.sum(axis=1, keepdims=True)
    best = np.sum(counts * np.log(frequency))
    together = counts.sum(axis=0) / counts.sum()
    possible = jnp.ones(OUTCOMES, bool)
    for latents, expected in ((OUTCOMES + 1, best), (1, np.sum(counts * np.log(together)))):
        heights = climb(first_guess(jnp.asarray(counts), possible, latents), jnp.asarray(counts), 300)
        assert heights[-1] == pytest.approx(expected, abs=0.3 if latents > 1 else 1e-9)
    assert expected < best - 10


@in_float64
def test_a_step_that_forgets_the_likelihood_lowers_it() -> None:
    """What the first test would catch: an M-step with responsibilities of the prior alone."""
    counts = jnp.asarray(np.random.default_rng(1).integers(1, 20, size=(PAIRS, OUTCOMES)).astype(float))
    fitted = first_guess(counts, jnp.ones(OUTCOMES, bool), 3)
    for _ in range(50):
        fitted = step_of(fitted, counts)
    emission = fitted.prior.T @ counts
    wrong = Factors(fitted.prior, emission / jnp.sum(emission, axis=1, keepdims=True))
    assert float(likelihood_of(wrong, counts)) < float(likelihood_of(fitted, counts)) - 1


@in_float64
def test_unseen_pairs_have_a_latent_of_their_own_that_emits_the_average() -> None:
    counts = np.zeros((1, 4, 2, 3))
    counts[0, 0, 0] = [6, 0, 0]
    counts[0, 1, 1] = [0, 2, 0]
    model = fit_of(jnp.asarray(counts), jnp.asarray([[True, True, False]]), latents=2, steps=20)
    prior, probability = np.asarray(model.prior[0]), np.asarray(model.probability()[0])
    seen = counts[0].sum(axis=2) > 0
    np.testing.assert_allclose(prior[~seen], np.tile([0.0, 0.0, 1.0], (6, 1)))
    np.testing.assert_allclose(prior[seen][:, -1], 0)
    np.testing.assert_allclose(probability[~seen], np.tile([0.75, 0.25, 0.0], (6, 1)))
    np.testing.assert_allclose(probability[0, 0], [1, 0, 0], atol=1e-6)
    np.testing.assert_allclose(probability[1, 1], [0, 1, 0], atol=1e-6)


@in_float64
def test_without_data_everything_is_unseen_and_any_outcome_as_likely() -> None:
    model = fit_of(jnp.zeros((1, 4, 2, 3)), jnp.asarray([[True, True, False]]), latents=2, steps=20)
    np.testing.assert_allclose(model.probability(), np.broadcast_to([0.5, 0.5, 0.0], (1, 4, 2, 3)))


@settings(max_examples=20)
@given(SEEDS, st.floats(0.01, 10), st.floats(0.1, 5))
@in_float64
def test_the_bonus_is_that_of_a_naive_solve(seed: int, alpha: float, regularisation: float) -> None:
    rng = np.random.default_rng(seed)
    features = rng.dirichlet(np.ones(4), size=PAIRS)
    visits = rng.integers(0, 50, size=PAIRS)
    sigma = regularisation * np.eye(4)
    for phi, n in zip(features, visits, strict=True):
        for _ in range(n):
            sigma += np.outer(phi, phi)
    expected = [min(alpha * np.sqrt(phi @ np.linalg.solve(sigma, phi)), 2) for phi in features]
    given_ = (jnp.asarray(x, float) for x in (features, visits, alpha, regularisation))
    np.testing.assert_allclose(bonus_of(*given_), expected, rtol=1e-10)


@in_float64
def test_the_bonus_of_one_latent_falls_with_the_root_of_its_visits() -> None:
    features = jnp.eye(3)
    bonus = bonus_of(features, jnp.array([0.0, 3.0, 99.0]), jnp.array(0.5), jnp.array(1.0))
    np.testing.assert_allclose(bonus, [0.5, 0.25, 0.05])
    np.testing.assert_allclose(bonus_of(features, jnp.zeros(3), jnp.array(9.0), jnp.array(1.0)), 2.0)
