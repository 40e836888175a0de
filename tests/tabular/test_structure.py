"""Decodability and observability, against what is known of a POMDP by construction."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from scipy.sparse import csr_array

from mulv.core.errors import MulvError
from mulv.tabular.observability import (
    emission_observability,
    observability,
    search_corners,
    search_splits,
)
from mulv.tabular.pomdp import POMDP
from mulv.tabular.structure import decodability_gap, is_decodable, smallest_window
from mulv.tabular.windows import enumerate_histories
from mulv.tabular.zoo import make
from tests.tabular.models import delayed_bit, generic, noisy_cause, of_order, with_fresh_bit

seeds = st.integers(0, 10_000)


@settings(max_examples=10)
@given(seeds, st.integers(1, 3))
def test_the_smallest_window_is_the_order_of_the_process(seed: int, order: int) -> None:
    assert smallest_window(of_order(order, seed), horizon=5, bound=4) == order


@settings(max_examples=10)
@given(seeds)
def test_beliefs_that_are_not_dirac_are_decoded_too(seed: int) -> None:
    for pomdp in (with_fresh_bit(of_order(2, seed), seed), noisy_cause(seed)):
        histories = enumerate_histories(pomdp, 2, 5)
        assert decodability_gap(histories) < 1e-12
        assert max(layer.belief.max() for layer in histories.layers[1:]) < 1
        assert not is_decodable(pomdp, 1, 5)


@settings(max_examples=10)
@given(seeds)
def test_a_generic_pomdp_is_decoded_by_its_whole_history_only(seed: int) -> None:
    assert smallest_window(generic(seed, observations=2), horizon=4, bound=4) == 4
    assert smallest_window(generic(seed, observations=2), horizon=4, bound=3) is None


@pytest.mark.parametrize("length", [1, 2, 3])
def test_the_locks_window_is_its_l(length: int) -> None:
    assert smallest_window(make("lock", H=7, L=length), horizon=7, bound=length) == length


def test_a_longer_window_never_decodes_less() -> None:
    gaps = [decodability_gap(enumerate_histories(generic(3), n, 5)) for n in range(1, 6)]
    assert gaps == sorted(gaps, reverse=True)
    assert gaps[0] > 0.1
    assert gaps[-1] == 0


def test_a_clock_has_a_decoder_for_each_step_and_none_for_all() -> None:
    """The definition writes p* without h; a state that only counts steps tells the two readings apart."""
    clock = POMDP(
        (np.eye(5, k=1) + np.diag(np.eye(5)[4]),), (np.ones((5, 1)),), np.zeros((1, 5)), np.eye(5)[0], 1.0
    )
    assert is_decodable(clock, 1, 4)
    assert not is_decodable(clock, 1, 4, one_decoder=True)
    assert is_decodable(of_order(2, 0), 2, 5, one_decoder=True)


def gamma_by_every_split(matrix: np.ndarray) -> float:
    """The definition's minimum, one linear program for each split of the states."""
    states, observations = matrix.shape
    best = np.inf
    for signs in product((1, -1), repeat=states):
        if len(set(signs)) == 1:
            continue
        side = np.array(signs)
        signed = (side[:, None] * matrix).T  # of |d|
        rows = np.block([[signed, -np.eye(observations)], [-signed, -np.eye(observations)]])
        sums = np.block([[side == 1, np.zeros(observations)], [side == -1, np.zeros(observations)]]).astype(
            float
        )
        cost = np.r_[np.zeros(states), np.full(observations, 0.5)]
        best = min(best, linprog(cost, rows, np.zeros(2 * observations), sums, np.ones(2)).fun)
    return float(best)


@settings(max_examples=10)
@given(seeds, st.integers(2, 4), st.integers(0, 3))
def test_gamma_is_the_minimum_over_all_splits(seed: int, states: int, more: int) -> None:
    matrix = np.random.default_rng(seed).dirichlet(np.full(states + more, 0.5), size=states)
    exact = gamma_by_every_split(matrix)
    assert search_splits(matrix).gamma == pytest.approx(exact, abs=1e-6)
    assert emission_observability(csr_array(matrix)).gamma == pytest.approx(exact, abs=1e-6)
    if not more:
        assert search_corners(matrix).gamma == pytest.approx(exact, abs=1e-6)


@settings(max_examples=10)
@given(seeds)
def test_no_pair_of_beliefs_is_told_apart_less_than_the_two_that_attain_gamma(seed: int) -> None:
    rng = np.random.default_rng(seed)
    matrix = rng.dirichlet(np.ones(6), size=4)
    gamma, p, q = emission_observability(csr_array(matrix))

    def ratio(b: np.ndarray, c: np.ndarray) -> float:
        return float(np.abs((b - c) @ matrix).sum() / np.abs(b - c).sum())

    assert ratio(p, q) == pytest.approx(gamma, abs=1e-9)
    assert min(ratio(*rng.dirichlet(np.full(4, 0.3), size=2)) for _ in range(200)) >= gamma - 1e-6


@pytest.mark.parametrize("states", [2, 5, 30])
def test_gamma_of_states_seen_through_noise_is_what_the_noise_leaves(states: int) -> None:
    noisy = 0.7 * np.eye(states) + 0.3 / states
    assert emission_observability(csr_array(noisy)).gamma == pytest.approx(0.7)
    twice = np.repeat(noisy, 2, axis=1) / 2  # each observation has a synonym
    assert emission_observability(csr_array(twice)).gamma == pytest.approx(0.7)


def test_gamma_is_zero_where_observations_are_too_few_or_say_nothing() -> None:
    assert observability(generic(0, states=4, observations=3)).gamma == 0
    assert observability(delayed_bit(3)).gamma == 0
    found = observability(make("tiger"))  # doors tell nothing: the worst action counts
    assert found.gamma == 0
    np.testing.assert_allclose((found.p - found.q) @ make("tiger").observation[1].toarray(), 0, atol=1e-12)
    listening = emission_observability(make("tiger").observation[0])
    assert listening.gamma == pytest.approx(0.7)


def test_one_state_has_no_gamma() -> None:
    with pytest.raises(MulvError, match="one state"):
        observability(POMDP((np.eye(1),), (np.eye(1),), np.zeros((1, 1)), np.ones(1), 1.0))
