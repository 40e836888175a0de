"""Noise by a hash of counters is normal, and every part of it independent of the others."""

import jax
import numpy as np
import pytest
from scipy import stats

from mulv.core.noise import counted_normal

KEY = jax.random.key(0, impl="rbg")
DRAWN = np.asarray(counted_normal(KEY, (1000, 256)), np.float64)


def test_it_is_normal():
    assert stats.kstest(DRAWN.ravel(), "norm").pvalue > 0.01
    assert np.isfinite(DRAWN).all()
    assert np.abs(DRAWN).max() > 4  # its tails are there


@pytest.mark.parametrize("lag", [1, 2, 3, 7, 128, 256, 257, 4096])
def test_neighbours_are_independent(lag):
    flat = DRAWN.ravel()
    for power in (1, 2):  # neither they nor their sizes are correlated
        one, other = flat[:-lag] ** power, flat[lag:] ** power
        assert abs(np.corrcoef(one, other)[0, 1]) < 4 / flat.size**0.5


def test_rows_have_the_covariance_of_independent_normals():
    covariance = np.cov(DRAWN[:, :64].T)
    largest = np.linalg.eigvalsh(covariance)[-1]
    assert largest < (1 + (64 / 1000) ** 0.5) ** 2 * 1.1  # the edge of the spectrum of pure noise


@pytest.mark.parametrize("other", [jax.random.key(1, impl="rbg"), jax.random.fold_in(KEY, 1)])
def test_another_key_draws_independent_noise(other):
    more = np.asarray(counted_normal(other, DRAWN.shape))
    assert abs(np.corrcoef(DRAWN.ravel(), more.ravel())[0, 1]) < 4 / DRAWN.size**0.5
    assert len(np.intersect1d(DRAWN.ravel()[:1000], more.ravel()[:1000])) < 10


def test_keys_of_a_batch_draw_what_they_draw_alone():
    keys = jax.random.split(jax.random.key(0), 3)
    together = jax.vmap(lambda key: counted_normal(key, (5,)))(keys)
    np.testing.assert_array_equal(together, [counted_normal(key, (5,)) for key in keys])
