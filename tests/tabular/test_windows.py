"""Merged histories against every history one by one."""

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mulv.core.errors import MulvError
from mulv.tabular.belief import initial, observation_probabilities, update
from mulv.tabular.policies import belief_policy, uniform_policy, window_policy
from mulv.tabular.pomdp import POMDP
from mulv.tabular.windows import NO_OBSERVATION, Histories, decode, enumerate_histories, history_occupancy
from mulv.tabular.zoo import make
from tests.tabular.models import generic, of_order

seeds = st.integers(0, 10_000)


def one_by_one(
    pomdp: POMDP, histories: Histories, policy: list[np.ndarray]
) -> Iterator[tuple[int, tuple[int, ...], np.ndarray, float, int]]:
    """Every history: its step, itself, its belief, its probability, its place among the merged ones."""
    if pomdp.initial_observation is None:
        stack = [(0, (NO_OBSERVATION,), initial(pomdp), 1.0, 0)]
    else:
        shown = pomdp.start @ pomdp.initial_observation
        seen = np.flatnonzero(shown)
        stack = [(0, (int(o),), initial(pomdp, o), shown[o], i) for i, o in enumerate(seen)]
    while stack:
        h, history, belief, probability, place = stack.pop()
        yield h, history, belief, probability, place
        if h + 1 == histories.horizon:
            continue
        for a in range(pomdp.actions):
            for o, p in enumerate(observation_probabilities(pomdp, belief, a)):
                if p > 0:
                    after = histories.layers[h].next_history[place, a, o]
                    reached = probability * policy[h][place, a] * p
                    stack.append((h + 1, (*history, a, o), update(pomdp, belief, a, o), reached, after))


@settings(max_examples=10)
@given(seeds, st.integers(1, 3))
def test_windows_beliefs_and_occupancies_are_those_of_every_history(seed: int, length: int) -> None:
    for pomdp in (generic(seed, observations=2), of_order(2, seed), make("tiger")):
        histories = enumerate_histories(pomdp, length, 4)
        policy = window_policy(histories, np.random.default_rng(seed))
        total = [np.zeros(len(layer.window)) for layer in histories.layers]
        for h, history, belief, probability, place in one_by_one(pomdp, histories, list(policy)):
            layer = histories.layers[h]
            assert layer.windows[layer.window[place]] == history[-(2 * length - 1) :]
            np.testing.assert_allclose(layer.belief[place], belief, atol=1e-9)
            total[h][place] += probability
        for summed, occupancy in zip(total, history_occupancy(histories, policy), strict=True):
            np.testing.assert_allclose(occupancy, summed, atol=1e-12)
            assert summed.sum() == pytest.approx(1.0)


def test_a_decodable_pomdp_has_one_history_a_window_however_long_the_episode() -> None:
    histories = enumerate_histories(of_order(2, 0), 2, 12)
    assert all(len(layer.window) == len(layer.windows) <= 8 for layer in histories.layers)


def test_windows_that_do_not_decode_keep_their_histories_apart() -> None:
    layer = enumerate_histories(of_order(3, 0), 2, 5).layers[-1]
    assert len(layer.window) > len(layer.windows)


def test_what_a_decodable_window_decodes_to_depends_on_no_policy_and_otherwise_it_does() -> None:
    def difference(pomdp: POMDP) -> float:
        histories = enumerate_histories(pomdp, 2, 4)
        first, second = (
            decode(histories, window_policy(histories, np.random.default_rng(i))) for i in (0, 1)
        )
        return max(float(np.max(np.abs(a - b))) for a, b in zip(first, second, strict=True))

    assert difference(of_order(2, 0)) < 1e-12
    assert difference(of_order(3, 0)) > 1e-3


def test_a_policy_of_beliefs_is_a_policy_of_windows_only_where_they_decode() -> None:
    def apart(pomdp: POMDP) -> float:
        histories = enumerate_histories(pomdp, 2, 5)
        policy = belief_policy(histories, np.random.default_rng(0))
        layer = histories.layers[-1]
        first = np.unique(layer.window, return_index=True)[1]
        return float(np.max(np.abs(policy[-1] - policy[-1][first][layer.window])))

    assert apart(of_order(2, 0)) == 0
    assert apart(of_order(3, 0)) > 0.01


def test_a_window_the_policy_never_meets_is_decoded_all_the_same() -> None:
    histories = enumerate_histories(of_order(2, 0), 2, 4)
    never = [np.eye(2)[np.zeros(len(layer.window), int)] for layer in histories.layers]
    decoded, exact = decode(histories, never), decode(histories, uniform_policy(histories))
    np.testing.assert_allclose(decoded[-1], exact[-1], atol=1e-12)


def test_too_many_histories_are_one_clear_error() -> None:
    with pytest.raises(MulvError, match="take a shorter horizon"):
        enumerate_histories(generic(0), 2, 10, limit=10_000)
    with pytest.raises(MulvError, match="both need one"):
        enumerate_histories(generic(0), 0, 3)
