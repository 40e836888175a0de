"""Theorem obs_approx: the L-step model's error falls with L where γ > 0, and need not where γ = 0."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mulv.tabular.approximation import Prior, approximation_errors, sufficient_window
from mulv.tabular.observability import observability
from mulv.tabular.policies import uniform_policy, window_policy
from mulv.tabular.pomdp import POMDP
from mulv.tabular.windows import enumerate_histories
from tests.tabular.models import delayed_bit, generic, of_order

seeds = st.integers(0, 10_000)


def sticky(noise: float) -> POMDP:
    """Two states that seldom change, seen right with probability 1 − noise: γ = 1 − 2 noise."""
    emission = np.array([[1 - noise, noise], [noise, 1 - noise]])
    moves = (np.array([[0.9, 0.1], [0.2, 0.8]]), np.array([[0.7, 0.3], [0.1, 0.9]]))
    return POMDP(moves, (emission,) * 2, np.eye(2), np.array([0.5, 0.5]), 1.0, emission)


def errors_by_length(pomdp: POMDP, horizon: int, prior: Prior = "uniform") -> np.ndarray:
    """The largest error over the steps, for L = 1, …, H."""
    worst = []
    for length in range(1, horizon + 1):
        histories = enumerate_histories(pomdp, length, horizon)
        worst.append(approximation_errors(histories, uniform_policy(histories), prior).max())
    return np.array(worst)


@pytest.mark.parametrize("noise", [0.05, 0.15, 0.25])
def test_the_error_falls_geometrically_where_observations_tell_states_apart(noise: float) -> None:
    pomdp = sticky(noise)
    assert observability(pomdp).gamma == pytest.approx(1 - 2 * noise)
    errors = errors_by_length(pomdp, 5)
    assert np.all(errors[1:] < 0.75 * errors[:-1])
    assert errors[-1] < 1e-12  # a window as long as the episode


def test_the_theorems_length_suffices_there() -> None:
    pomdp = sticky(0.15)
    errors = errors_by_length(pomdp, 5)
    for epsilon in (0.1, 0.05):
        needed = 1 + int(np.argmax(errors <= epsilon))
        assert needed < sufficient_window(observability(pomdp).gamma, pomdp.states, epsilon)


@pytest.mark.parametrize("prior", ["uniform", "policy"])
def test_the_error_stays_where_gamma_is_zero(prior: Prior) -> None:
    """A bit shown every five steps and not between: no window shorter than that helps."""
    pomdp = delayed_bit(5)
    errors = errors_by_length(pomdp, 7, prior)
    assert np.all(errors[:4] >= 1 - 1e-12)
    assert np.all(errors[4:] < 1e-12)
    assert sufficient_window(observability(pomdp).gamma, pomdp.states, 0.1) == np.inf


def test_gamma_zero_alone_does_not_make_the_error_stay() -> None:
    """The theorem has one direction: a decodable POMDP has no error, whatever its γ."""
    pomdp = of_order(2, 0)
    assert observability(pomdp).gamma == 0
    errors = errors_by_length(pomdp, 5)
    assert errors[0] > 0.05
    assert np.all(errors[1:] < 1e-12)


@settings(max_examples=10)
@given(seeds, st.integers(1, 3))
def test_windows_that_hold_the_whole_history_have_no_error(seed: int, length: int) -> None:
    histories = enumerate_histories(generic(seed, observations=2), length, 4)
    policy = window_policy(histories, np.random.default_rng(seed))
    errors = approximation_errors(histories, policy)
    assert np.all(errors[:length] < 1e-12)
    assert np.all(errors[length:] > 0)


@settings(max_examples=10)
@given(seeds)
def test_no_shorter_window_is_better_than_twice_a_longer_one(seed: int) -> None:
    """A conditional mean is within a factor two of the best L1 prediction, and more windows tell no less."""
    errors = errors_by_length(generic(seed, observations=2), 4, "policy")
    for short, long in itertools.pairwise(errors):
        assert long <= 2 * short + 1e-12
