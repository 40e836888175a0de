"""Noise that lasts: its variance, its spectrum, and what it is a function of."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mulv.core.pink import pink_noise

KEY = jax.random.key(0, impl="rbg")  # as runs have it
STEPS, SERIES = 4096, 64


def series(octaves: int, key=KEY) -> np.ndarray:
    """Many series side by side, step by step."""
    at = jax.jit(lambda step: pink_noise(key, step, (SERIES,), octaves))
    return np.asarray(jax.lax.map(at, jnp.arange(STEPS)))


def slope(noise: np.ndarray, octaves: int) -> float:
    """Of the logarithm of power over that of frequency, within the octaves."""
    power = np.mean(np.abs(np.fft.rfft(noise, axis=0)) ** 2, axis=1)
    frequency = np.fft.rfftfreq(len(noise))
    edges = 2.0 ** -np.arange(1, octaves)[::-1]
    within = [(frequency >= low) & (frequency < 2 * low) for low in edges[:-1]]
    means = [power[band].mean() for band in within]
    return float(np.polyfit(np.log(edges[:-1]), np.log(means), 1)[0])


@pytest.mark.parametrize("octaves", [1, 3, 8])
def test_every_step_is_standard_normal(octaves: int) -> None:
    draws = series(octaves)[:: 2**octaves]  # far enough apart to be drawn anew
    assert draws.mean() == pytest.approx(0.0, abs=0.1)
    assert draws.std() == pytest.approx(1.0, abs=0.07)
    fourth = np.mean(draws**4) / np.mean(draws**2) ** 2
    assert fourth == pytest.approx(3.0, abs=0.5)


def test_power_falls_as_one_over_frequency_and_white_noise_has_it_everywhere() -> None:
    assert slope(series(8), 8) == pytest.approx(-1.0, abs=0.2)
    assert slope(series(1), 8) == pytest.approx(0.0, abs=0.1)


@pytest.mark.parametrize("lag", [1, 4, 16])
def test_what_two_steps_share_is_what_neither_drew_anew(lag: int) -> None:
    octaves, noise = 6, series(6)
    shared = np.mean(noise[lag:] * noise[:-lag])
    lasting = np.mean([max(0.0, 1 - lag / 2**k) for k in range(octaves)])  # in one block of length 2^k
    assert shared == pytest.approx(lasting, abs=0.04)
    assert np.mean(series(1)[lag:] * series(1)[:-lag]) == pytest.approx(0.0, abs=0.02)


def test_entries_and_keys_are_independent() -> None:
    noise = series(8)
    apart = np.corrcoef(noise[:, :8].T) - np.eye(8)
    assert np.abs(apart).mean() < 0.25  # as slow as the noise is, few draws are independent
    other = series(8, jax.random.key(1, impl="rbg"))
    assert np.abs(np.mean(noise * other)) < 0.05


@pytest.mark.parametrize("lanes", [1, 3])
def test_white_noise_is_what_runs_drew_before_there_were_octaves(lanes: int) -> None:
    keys = jax.random.split(jax.random.fold_in(KEY, 7), lanes)
    before = jax.vmap(lambda key: jax.random.normal(key, (2,)))(keys)
    np.testing.assert_array_equal(pink_noise(KEY, jnp.int32(7), (lanes, 2), 1), before)


def test_a_step_needs_no_step_before_it() -> None:
    at = jax.jit(lambda step: pink_noise(KEY, step, (SERIES,), 8))
    np.testing.assert_array_equal(at(jnp.int32(1000)), series(8)[1000])
