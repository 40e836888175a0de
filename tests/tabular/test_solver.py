"""Bounds against exact values: of POMDPs that end, of every plan, of Tiger."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mulv.core.errors import MulvError
from mulv.tabular.solver import solve
from mulv.tabular.solver.finite import finite_value
from mulv.tabular.solver.initial import blind_values, informed_values, mdp_values
from mulv.tabular.solver.search import Search
from mulv.tabular.zoo import make
from tests.tabular.planning import best_plan, that_ends
from tests.tabular.support import random_pomdp

seeds = st.integers(0, 10**6)


def small(seed: int, first: bool, zeros: float = 0.3):
    return random_pomdp(seed, states=3, actions=2, observations=2, first=first, zeros=zeros)


def run(search: Search, trials: int) -> None:
    for _ in range(trials):
        search.trial(1e-3)


@given(seeds, st.sampled_from([(False, 1), (False, 2), (False, 3), (True, 1), (True, 2)]))
@settings(max_examples=12)
def test_dynamic_programming_finds_the_best_of_all_plans(seed, case):
    first, horizon = case
    pomdp = small(seed, first)
    assert finite_value(pomdp, horizon)[0] == pytest.approx(best_plan(pomdp, horizon), abs=1e-12)


def test_the_best_plan_looks_at_what_it_sees():
    """The reference would miss nothing if plans were blind, and neither would what it is a reference for."""
    tiger = make("tiger")
    hear = replace(tiger, observation=(np.eye(2), *tiger.observation[1:]))  # listening tells the door
    assert best_plan(hear, 2) == pytest.approx(-1 + 0.95 * 10)
    deaf = replace(tiger, observation=(np.full((2, 2), 0.5), *tiger.observation[1:]))
    assert best_plan(deaf, 2) == pytest.approx(-1 - 0.95)


@given(seeds, st.booleans(), st.integers(1, 4))
@settings(max_examples=20)
def test_bounds_bracket_the_exact_value_at_every_trial_and_close_on_it(seed, first, horizon):
    pomdp = small(seed, first)
    exact, _ = finite_value(pomdp, horizon)
    search = Search(that_ends(pomdp, horizon))
    lower, upper = search.bounds()
    for _ in range(300):
        assert lower - 1e-10 <= exact <= upper + 1e-10
        if upper - lower < 1e-5:
            break
        search.trial(1e-6)
        (low, up), (old_low, old_up) = search.bounds(), (lower, upper)
        assert low >= old_low - 1e-9
        assert up <= old_up + 1e-9
        lower, upper = low, up
    assert upper - lower < 1e-5


@given(seeds, st.booleans())
@settings(max_examples=8)
def test_bounds_hold_without_an_end(seed, first):
    """The rest of an exact value after some decisions is at most what the best reward pays for ever."""
    pomdp = replace(small(seed, first), discount=0.6)
    horizon = 5
    exact, _ = finite_value(pomdp, horizon)
    rest = pomdp.discount**horizon / (1 - pomdp.discount) * pomdp.reward
    bounds = solve(pomdp, precision=1e-4, seconds=20).bounds
    assert bounds.gap <= 1e-4
    assert exact + rest.min() <= bounds.upper
    assert bounds.lower <= exact + rest.max()


@given(seeds, st.integers(1, 3), st.data())
@settings(max_examples=10)
def test_vectors_hold_at_every_belief_also_where_no_trial_came(seed, horizon, data):
    pomdp = that_ends(small(seed, False, zeros=0.6), horizon)
    vectors = solve(pomdp, precision=1e-6, seconds=20).alpha_vectors()
    for place in data.draw(st.lists(seeds, min_size=3, max_size=3)):
        rng = np.random.default_rng(place)
        belief = rng.dirichlet(np.full(pomdp.states, 0.3))
        exact, _ = finite_value(replace(pomdp, start=belief), horizon)
        assert vectors.value(belief) <= exact + 1e-9


@given(seeds, st.booleans())
@settings(max_examples=15)
def test_the_bounds_to_start_from_are_in_order(seed, first):
    pomdp = small(seed, first)
    blind, informed, mdp = blind_values(pomdp), informed_values(pomdp), mdp_values(pomdp)
    assert np.all(blind.max(axis=0) <= informed.max(axis=0))
    assert np.all(informed <= mdp)
    for a, kernel in enumerate(pomdp.transition):
        forever = np.linalg.solve(np.eye(3) - pomdp.discount * kernel.toarray(), pomdp.reward[a])
        np.testing.assert_allclose(blind[a], forever, atol=1e-4, rtol=1e-5)
        assert np.all(blind[a] <= forever + 1e-9)


def test_tiger_has_its_known_value():
    bounds = solve(make("tiger"), precision=1e-3, seconds=60).bounds
    assert bounds.lower <= 19.3713 + 1e-3
    assert bounds.upper >= 19.3713 - 1e-3
    assert bounds.gap <= 1e-3


def test_rocksample_has_its_known_value():
    bounds = solve(make("rocksample-4-4"), precision=0.3, seconds=60).bounds
    assert bounds.gap <= 0.3
    assert 17.6 < bounds.lower <= 18.0 <= bounds.upper + 0.1


@pytest.mark.parametrize("value", [0.0, 19.3])
def test_an_upper_bound_that_is_none_is_noticed(value):
    """Tiger is worth 19.37; a search from below that meets its lower bound."""
    search = Search(make("tiger"), informed=np.full((3, 2), value))
    with pytest.raises(MulvError, match="crossed"):
        run(search, trials=200)


def test_an_upper_bound_that_is_loose_is_none_of_those():
    search = Search(make("tiger"), informed=np.full((3, 2), 300.0))
    run(search, trials=60)
    lower, upper = search.bounds()
    assert lower <= 19.3714 <= upper


@pytest.mark.parametrize("discount", [0.0, 1.0])
def test_a_discount_that_bounds_nothing_is_an_error(discount):
    with pytest.raises(MulvError, match="--gamma"):
        solve(replace(make("tiger"), discount=discount))


def test_a_horizon_is_solved_exactly_even_undiscounted():
    solution = solve(replace(make("tiger"), discount=1.0), horizon=2)
    assert solution.bounds.lower == solution.bounds.upper == pytest.approx(-2)
    with pytest.raises(MulvError, match="changes with the step"):
        solution.alpha_vectors()


def test_time_ends_a_search_with_bounds_that_hold():
    bounds = solve(make("tiger"), precision=1e-9, seconds=1e-3).bounds
    assert bounds.gap > 1
    assert bounds.lower <= 19.3713 <= bounds.upper
