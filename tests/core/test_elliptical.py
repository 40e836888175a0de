"""The ellipsoid is Σ's, in float32 where Σ itself would not fit, however it came to its rows."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mulv.core.elliptical import LIMIT, Ellipsoid, bonus

FEATURES = 16
extend = eqx.filter_jit(lambda ellipsoid, rows: ellipsoid.extended(rows))
rebuild = eqx.filter_jit(lambda ellipsoid, rows, count, kept: ellipsoid.rebuilt(rows, count, kept))


def rows_of_condition(condition: float, seed: int = 0) -> np.ndarray:
    """Rows whose ΦᵀΦ has eigenvalues from 1 to `condition`."""
    rng = np.random.default_rng(seed)
    left, _ = np.linalg.qr(rng.normal(size=(4 * FEATURES, FEATURES)))
    right, _ = np.linalg.qr(rng.normal(size=(FEATURES, FEATURES)))
    return np.float32(left * np.geomspace(1, condition**0.5, FEATURES) @ right.T)


def exact_norm(phi: np.ndarray, sigma: np.ndarray) -> np.ndarray:
    phi = phi.astype(np.float64)
    return np.sqrt(np.sum(phi * np.linalg.solve(sigma, phi.T).T, axis=-1))


def sigma_of(ellipsoid: Ellipsoid) -> np.ndarray:
    w = np.asarray(ellipsoid.whitener, np.float64)
    return np.linalg.inv(w @ w.T)


@pytest.mark.parametrize("condition", [1e2, 1e4, 1e6, 1e8])
@pytest.mark.parametrize("parts", [1, 4])
def test_norms_are_those_of_a_float64_solve_at_any_condition(condition, parts):
    rows = rows_of_condition(condition)
    phi = np.concatenate([rows, np.random.default_rng(1).normal(size=(50, FEATURES)).astype(np.float32)])
    ellipsoid = Ellipsoid(FEATURES, 1.0)
    for part in np.split(rows, parts):
        ellipsoid = extend(ellipsoid, jnp.asarray(part))
    sigma = rows.T.astype(np.float64) @ rows + np.eye(FEATURES)
    np.testing.assert_allclose(ellipsoid.norm(phi), exact_norm(phi, sigma), rtol=1e-3)


def test_forming_sigma_in_float32_would_not_do():
    rows = rows_of_condition(1e8)
    sigma = rows.T.astype(np.float64) @ rows + np.eye(FEATURES)
    rounded = rows.T @ rows + np.eye(FEATURES, dtype=np.float32)
    phi = np.random.default_rng(1).normal(size=(50, FEATURES)).astype(np.float32)
    norm = np.sqrt(np.abs(np.sum(phi * np.linalg.solve(rounded, phi.T).T, axis=-1)))
    assert np.abs(norm / exact_norm(phi, sigma) - 1).max() > 0.05


@given(st.integers(0, 2**20), st.floats(1.0, 1e4), st.floats(0.0, 1.0))
@settings(max_examples=30)
def test_a_rebuilt_sigma_is_the_mixture_it_says(seed, grows, kept):
    """Rows weighted to stand for the new part of the count, the old part for the rest, λ for itself."""
    rng = np.random.default_rng(seed)
    before, rows = (rng.normal(size=(32, FEATURES)).astype(np.float32) for _ in range(2))
    count = 32 * grows
    first = extend(Ellipsoid(FEATURES, 1.0), jnp.asarray(before))
    got = rebuild(first, jnp.asarray(rows), jnp.float32(count), jnp.float32(kept))
    old = min(kept * grows, 1.0)
    data_before, data = (r.T.astype(np.float64) @ r for r in (before, rows))
    expected = old * data_before + (count - 32 * old) / 32 * data + np.eye(FEATURES)
    np.testing.assert_allclose(sigma_of(got), expected, rtol=1e-3, atol=1e-3 * np.trace(expected) / FEATURES)
    assert float(got.count) == pytest.approx(count)


@pytest.mark.parametrize("regularisation", [0.1, 10.0])
@pytest.mark.parametrize("visits", [1, 100])
def test_visits_shrink_the_norm_in_their_direction_and_in_no_other(regularisation, visits):
    rows = np.zeros((visits, FEATURES), np.float32)
    rows[:, 0] = 1.0
    ellipsoid = Ellipsoid(FEATURES, regularisation).extended(jnp.asarray(rows))
    norms = ellipsoid.norm(jnp.eye(FEATURES))
    np.testing.assert_allclose(norms[0], (visits + regularisation) ** -0.5, rtol=1e-4)
    np.testing.assert_allclose(norms[1:], regularisation**-0.5, rtol=1e-4)


def test_what_is_not_kept_is_forgotten():
    old, new = np.eye(2, FEATURES, dtype=np.float32)[:, None]
    ellipsoid = extend(Ellipsoid(FEATURES, 1.0), jnp.asarray(np.repeat(old, 64, axis=0)))
    rows = jnp.asarray(np.repeat(new, 64, axis=0))
    forgot = rebuild(ellipsoid, rows, jnp.float32(64), jnp.float32(0.0))
    np.testing.assert_allclose(forgot.norm(jnp.eye(FEATURES)[:2]), [1.0, 65**-0.5], rtol=1e-3)
    half = rebuild(ellipsoid, rows, jnp.float32(64), jnp.float32(0.5))
    np.testing.assert_allclose(half.norm(jnp.eye(FEATURES)[:2]), [33**-0.5] * 2, rtol=1e-3)


def test_fewer_directions_measure_the_norm_to_their_share_and_as_many_exactly():
    rng = np.random.default_rng(0)
    ellipsoid = Ellipsoid(256, 1.0)
    phi = rng.normal(size=(400, 256)).astype(np.float32)
    assert ellipsoid.measure(256) is ellipsoid.whitener

    def error(directions: int) -> float:
        measured = np.linalg.norm(phi @ np.asarray(ellipsoid.measure(directions)), axis=1)
        return float(np.std(measured / np.asarray(ellipsoid.norm(phi))))

    assert error(128) < 1.5 * (2 * 128) ** -0.5
    assert error(8) > 0.7 * (2 * 8) ** -0.5


def test_the_bonus_is_the_lemmas():
    whitened = jnp.array([[0.0, 0.0], [0.3, 0.4], [3.0, 0.0]])  # of norms 0, ½ and 3
    np.testing.assert_allclose(bonus(whitened, 2.0, "norm"), [0.0, 1.0, LIMIT], atol=1e-6)
    np.testing.assert_allclose(bonus(whitened, 2.0, "squared"), [0.0, 0.5, LIMIT])
    np.testing.assert_allclose(bonus(whitened, 2.0, "norm", limit=5.0), [0.0, 1.0, 5.0], atol=1e-6)
    np.testing.assert_allclose(bonus(whitened, 2.0, "norm", limit=50.0), [0.0, 1.0, 6.0], atol=1e-6)


@pytest.mark.parametrize("form", ["norm", "squared"])
def test_the_bonus_has_a_slope_everywhere(form):
    slope = jax.grad(lambda phi: bonus(phi, 1.0, form))
    np.testing.assert_array_equal(slope(jnp.zeros(3)), jnp.zeros(3))
    assert jnp.linalg.norm(slope(jnp.array([0.3, 0.4, 0.0]))) == pytest.approx(1.0)  # at norm ½, of either
