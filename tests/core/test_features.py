"""Closed forms against sampling, against the kernels they stand for, and their gradients."""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jax.test_util import check_grads

from mulv.core.features import RandomFeatures, cosine, rectified_mean
from mulv.core.gaussian import DiagonalNormal

FAMILIES = ("fourier", "relu", "erf")
KEY = jax.random.key(0)


@pytest.fixture(scope="module", params=FAMILIES)
def family(request):
    return request.param


def gaussian(dim: int, seed: int = 0, spread: float = 0.7) -> DiagonalNormal:
    rng = np.random.default_rng(seed)
    mean, std = rng.normal(size=dim), spread * rng.uniform(0.2, 2.0, dim)
    return DiagonalNormal(jnp.float32(mean), jnp.float32(std))


def sampled(psi: RandomFeatures, p: DiagonalNormal, samples: int, seed: int) -> np.ndarray:
    noise = jax.random.normal(jax.random.key(seed), (samples, p.mean.shape[0]))
    total = jnp.zeros(psi.bias.shape)
    for part in jnp.split(noise, max(1, samples // 100_000)):
        total = total + jnp.sum(jax.vmap(lambda n: psi.at(p.sample(n)))(part), axis=0)
    return np.asarray(total / samples)


def test_the_closed_form_is_what_sampling_converges_to(family):
    """A million samples; the error falls as 1/√n, so a closed form that is off by a little is found."""
    psi, p = RandomFeatures(5, 16, family, 1.5, key=KEY), gaussian(5)
    exact = np.asarray(psi.mean(p), np.float64)
    errors = {
        n: np.mean([np.sqrt(np.mean((sampled(psi, p, n, seed) - exact) ** 2)) for seed in range(4)])
        for n in (1_000, 1_000_000)
    }
    assert errors[1_000_000] < 6e-4  # features are of order √(1/16), their means known to 1/√n of that
    assert 15 < errors[1_000] / errors[1_000_000] < 70  # √1000 = 31.6


def test_a_wrong_variance_is_told_from_the_right_one(family):
    psi, p = RandomFeatures(5, 16, family, 1.5, key=KEY), gaussian(5)
    wrong = np.asarray(psi.mean(DiagonalNormal(p.mean, 1.1 * p.std)))
    right = sampled(psi, p, 100_000, 0)
    assert np.sqrt(np.mean((wrong - right) ** 2)) > 10 * np.sqrt(np.mean((psi.mean(p) - right) ** 2))


def test_one_spread_for_all_dimensions_is_that_spread_in_each(family):
    psi, p, other = RandomFeatures(5, 16, family, 1.5, key=KEY), gaussian(5), gaussian(5, 1)
    one, many = (DiagonalNormal(p.mean, jnp.full(n, 0.6, jnp.float32)) for n in (1, 5))
    np.testing.assert_allclose(psi.mean(one), psi.mean(many), atol=1e-6)
    np.testing.assert_allclose(one.kl(other), many.kl(other), rtol=1e-5)
    gradients = [jax.grad(lambda psi, p=p: jnp.sum(psi.mean(p) ** 3))(psi) for p in (one, many)]
    np.testing.assert_allclose(gradients[0].omega, gradients[1].omega, atol=1e-6)
    twice = DiagonalNormal(p.mean, jnp.full(1, 1.2, jnp.float32))
    assert np.abs(psi.mean(twice) - psi.mean(many)).max() > 0.01


def kernel(family: str, z: np.ndarray, y: np.ndarray, lengthscale: float) -> float:
    """The kernels in float64, from their textbook formulas."""
    z, y = (np.asarray(v, np.float64) for v in (z, y))
    if family == "fourier":
        return float(np.exp(-0.5 * np.sum((z - y) ** 2) / lengthscale**2))
    # The bias acts as one more entry of z, a constant 1, whose weight has unit variance.
    z, y = (np.append(v / lengthscale, 1.0) for v in (z, y))
    if family == "relu":
        norms = np.linalg.norm(z) * np.linalg.norm(y)
        angle = np.arccos(np.clip(z @ y / norms, -1, 1))
        return float(norms * (np.sin(angle) + (np.pi - angle) * np.cos(angle)) / np.pi)
    return float(2 / np.pi * np.arcsin(2 * z @ y / np.sqrt((1 + 2 * z @ z) * (1 + 2 * y @ y))))


@pytest.mark.parametrize("seed", range(3))
def test_certain_latents_give_the_kernel_as_features_grow(family, seed):
    rng, scale = np.random.default_rng(seed), 1.7
    z, y = rng.normal(size=(2, 4)).astype(np.float32)
    wanted = kernel(family, z, y, scale)

    def error(features: int) -> float:
        found = []
        for k in range(8):
            psi = RandomFeatures(4, features, family, scale, key=jax.random.key(k))
            phi = [psi.mean(DiagonalNormal(jnp.asarray(v), jnp.zeros(4))) for v in (z, y)]
            found.append(float(phi[0] @ phi[1]))
        return float(np.sqrt(np.mean((np.array(found) - wanted) ** 2)))

    assert error(65_536) < 0.02 * max(1.0, abs(wanted))
    assert error(65_536) < 0.35 * error(1_024)  # 1/√64 is 1/8


def test_a_certain_latent_has_the_features_of_its_value(family):
    psi, z = RandomFeatures(4, 64, family, key=KEY), jnp.array([0.3, -1.2, 2.0, 0.0])
    np.testing.assert_allclose(psi.mean(DiagonalNormal(z, jnp.zeros(4))), psi.at(z), atol=2e-6)


def test_an_unknown_latent_has_no_fourier_features():
    psi = RandomFeatures(4, 64, "fourier", key=KEY)
    assert np.abs(psi.mean(DiagonalNormal(jnp.zeros(4), jnp.full(4, 50.0)))).max() < 1e-4


def test_gradients_are_those_of_finite_differences(family):
    psi, p = RandomFeatures(3, 8, family, key=KEY), gaussian(3)
    weight = jnp.linspace(-1, 1, 8)

    def f(mean, log_std, omega, bias):
        moved = eqx.tree_at(lambda m: (m.omega, m.bias), psi, (omega, bias))
        return jnp.dot(weight, moved.mean(DiagonalNormal(mean, jnp.exp(log_std))))

    check_grads(
        f, (p.mean, jnp.log(p.std), psi.omega, psi.bias), order=1, modes=["rev", "fwd"], atol=1e-2, rtol=1e-2
    )


def test_gradients_are_finite_where_the_latent_is_certain(family):
    psi = RandomFeatures(3, 8, family, key=KEY)
    gradient = jax.grad(lambda s: jnp.sum(psi.mean(DiagonalNormal(jnp.ones(3), s))))(jnp.zeros(3))
    assert np.isfinite(gradient).all()


@given(st.floats(-200, 200, width=32))
def test_cosine_is_cos_and_its_slope_is_minus_sin(x):
    assert float(cosine(jnp.float32(x))) == pytest.approx(np.cos(np.float64(np.float32(x))), abs=2e-6)
    slope = float(jax.grad(cosine)(jnp.float32(x)))
    assert slope == pytest.approx(-np.sin(np.float64(np.float32(x))), abs=2e-5)


@given(st.floats(-30, 30, width=32), st.floats(2**-6, 4, width=32))
def test_a_rectified_gaussian_has_the_textbooks_mean_and_slopes(m, s):
    """In float64 by another route; the slopes are Φ(m/s) and N(m/s)."""
    t = float(np.float64(m) / s)
    chance, density = 0.5 * math.erfc(-t / 2**0.5), math.exp(-0.5 * t * t) / (2 * math.pi) ** 0.5
    assert float(rectified_mean(m, s)) == pytest.approx(m * chance + s * density, abs=2e-6, rel=2e-6)
    slopes = jax.grad(rectified_mean, argnums=(0, 1))(jnp.float32(m), jnp.float32(s))
    np.testing.assert_allclose(slopes, (chance, density), atol=2e-6)


def test_a_gaussian_diverges_from_another_by_the_mean_log_ratio():
    p, q = gaussian(3, 0), gaussian(3, 1)
    z = np.asarray(jax.vmap(p.sample)(jax.random.normal(KEY, (400_000, 3))), np.float64)

    def log_density(g):
        mean, std = (np.asarray(v, np.float64) for v in (g.mean, g.std))
        return -0.5 * ((z - mean) / std) ** 2 - np.log(std)

    np.testing.assert_allclose(p.kl(q), np.mean(log_density(p) - log_density(q), axis=0), atol=0.02)
    np.testing.assert_allclose(p.kl(p), 0.0, atol=1e-6)
    assert (np.asarray(p.kl(q)) > 0).all()
