"""Locks, mazes and random POMDPs: which windows decode them, by listing every history."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mulv.tabular import belief, zoo
from mulv.tabular.pomdp import POMDP
from mulv.tabular.zoo.lock import right_digits


def decodability_gap(pomdp: POMDP, window: int) -> float:
    """The largest difference between beliefs of histories that end in one window."""
    alive = [
        ((o,), belief.initial(pomdp, o))
        for o in range(pomdp.observations)
        if pomdp.start @ pomdp.initial_observation[:, [o]].toarray()[:, 0] > 0
    ]
    gap = 0.0
    for _ in range(pomdp.horizon):
        seen: dict[tuple, np.ndarray] = {}
        for history, b in alive:
            first = seen.setdefault(history[-(2 * window - 1) :], b)
            gap = max(gap, np.abs(first - b).max())
        alive = [
            ((*history, a, o), belief.update(pomdp, b, a, o))
            for history, b in alive
            for a in range(pomdp.actions)
            for o in np.flatnonzero(belief.observation_probabilities(pomdp, b, a) > 0).tolist()
        ]
    return gap


def value_with_memory(pomdp: POMDP) -> float:
    """V* by a tree over beliefs."""

    def value(b: np.ndarray, left: int) -> float:
        if left == 0:
            return 0.0
        return max(
            pomdp.reward[a] @ b
            + sum(p * value(belief.update(pomdp, b, a, o), left - 1) for o, p in after(b, a))
            for a in range(pomdp.actions)
        )

    def after(b: np.ndarray, a: int) -> list[tuple[int, float]]:
        chances = belief.observation_probabilities(pomdp, b, a)
        return [(o, chances[o]) for o in np.flatnonzero(chances)]

    first = pomdp.start @ pomdp.initial_observation
    return sum(first[o] * value(belief.initial(pomdp, o), pomdp.horizon) for o in np.flatnonzero(first))


@pytest.mark.parametrize("L", [1, 2, 3])
def test_a_lock_is_decoded_by_its_window_and_by_no_shorter_one(L):
    pomdp = zoo.make("lock", H=5, L=L, actions=2)
    assert decodability_gap(pomdp, L) < 1e-12
    if L > 1:
        assert decodability_gap(pomdp, L - 1) > 0.4


def test_a_block_lock_shows_its_state_through_many_symbols():
    pomdp = zoo.make("block-lock", H=3, actions=2)
    assert decodability_gap(pomdp, 1) < 1e-12
    assert np.all((pomdp.observation[0].toarray() > 0).sum(axis=0) == 1)  # a symbol belongs to one state


def test_a_lock_opens_for_one_who_remembers_and_hardly_for_one_who_guesses():
    pomdp = zoo.make("lock", H=5, L=2, actions=2)
    assert value_with_memory(pomdp) == pytest.approx(1)
    reach = pomdp.start  # of the uniform policy
    for _ in range(4):
        reach = np.mean([reach @ t for t in pomdp.transition], axis=0)
    assert reach @ pomdp.reward[0] == pytest.approx(2**-4 + 0.1 * (1 - 2**-4))


def test_only_the_digit_before_a_draw_tells_the_good_states_apart():
    digits = right_digits(12, 3, 5, seed=1)
    assert np.flatnonzero(digits[:, 0] != digits[:, 1]).tolist() == [2, 5, 8, 11]


@given(st.integers(1, 3), st.integers(0, 10**6), st.integers(2, 3), st.integers(1, 2))
@settings(max_examples=15)
def test_random_ones_are_decoded_by_their_window_and_by_no_shorter_one(L, seed, values, hidden):
    pomdp = zoo.make("random-decodable", L=L, seed=seed, values=values, hidden=hidden, H=3)
    assert decodability_gap(pomdp, L) < 1e-12
    if L > 1:
        assert decodability_gap(pomdp, L - 1) > 1e-6
    if hidden > 1:  # the belief is no point mass
        assert belief.initial(pomdp, 0).max() < 1


def test_a_t_maze_is_decoded_by_no_window_short_of_it():
    pomdp = zoo.make("t-maze", length=2)
    assert decodability_gap(pomdp, 3) > 0.4
    assert decodability_gap(pomdp, 4) < 1e-12
    assert value_with_memory(pomdp) == pytest.approx(1)
