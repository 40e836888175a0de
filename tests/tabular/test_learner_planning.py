"""Planning over windows and exact evaluation, against recursion over histories."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mulv.tabular.belief import initial, observation_probabilities, update
from mulv.tabular.learner.planning import greedy, optimal_value, plan, policy_value
from mulv.tabular.learner.tables import WindowTables, window_tables
from mulv.tabular.linear_q import state_values
from mulv.tabular.pomdp import POMDP
from mulv.tabular.windows import enumerate_histories
from mulv.tabular.zoo import make
from tests.tabular.learning import infinite_data
from tests.tabular.models import generic, tempting_trap

value_of = eqx.filter_jit(policy_value)
plan_of = eqx.filter_jit(plan)
SEEDS = st.integers(0, 10_000)


def expectimax(pomdp: POMDP, belief: np.ndarray, decisions: int) -> float:
    """The best value from a belief, by trying everything."""
    if decisions == 0:
        return 0.0
    values = []
    for a in range(pomdp.actions):
        later = sum(
            p * expectimax(pomdp, update(pomdp, belief, a, o), decisions - 1)
            for o, p in enumerate(observation_probabilities(pomdp, belief, a))
            if p > 0
        )
        values.append(belief @ pomdp.reward[a] + pomdp.discount * later)
    return max(values)


def planned_value(pomdp: POMDP, window: int, horizon: int) -> tuple[float, WindowTables]:
    """The value of the best policy in the model that infinite data of uniform actions give to windows."""
    histories = enumerate_histories(pomdp, window, horizon)
    tables = window_tables(histories)
    with jax.enable_x64(True):
        data = infinite_data(histories, tables)
        model = data.counts / jnp.maximum(data.visits, 1e-300)[..., None]
        policy = jnp.argmax(plan_of(tables, model, tables.reward), axis=2).astype(jnp.int32)
        return float(value_of(tables, policy)), tables


@settings(max_examples=5)
@given(SEEDS)
def test_the_value_of_a_window_policy_is_that_of_its_histories(seed: int) -> None:
    histories = enumerate_histories(generic(seed), 2, 4)
    tables = window_tables(histories)
    policy = np.random.default_rng(seed).integers(2, size=(4, tables.windows)).astype(np.int32)
    rows = [np.eye(2)[policy[h, layer.window]] for h, layer in enumerate(histories.layers)]
    v = state_values(histories, rows).v[0]
    expected = histories.first @ np.sum(histories.layers[0].belief * v, axis=1)
    with jax.enable_x64(True):
        assert float(value_of(tables, jnp.asarray(policy))) == pytest.approx(expected, abs=1e-12)


@settings(max_examples=5)
@given(SEEDS)
def test_the_optimum_is_that_of_trying_everything(seed: int) -> None:
    pomdp = generic(seed)
    first = pomdp.start @ pomdp.initial_observation
    expected = sum(p * expectimax(pomdp, initial(pomdp, o), 3) for o, p in enumerate(first))
    for window in (1, 2):  # whatever a learner may read, the optimum is that of the POMDP
        tables = window_tables(enumerate_histories(pomdp, window, 3))
        assert optimal_value(tables) == pytest.approx(expected, abs=1e-12)


@settings(max_examples=8)
@given(SEEDS)
def test_with_the_exact_model_the_plan_is_optimal_where_windows_decode(seed: int) -> None:
    value, tables = planned_value(make("random-decodable", L=2, seed=seed, H=5), 2, 5)
    assert value == pytest.approx(optimal_value(tables), abs=1e-9)


@pytest.mark.parametrize(
    ("pomdp", "window"),
    [(make("t-maze", length=3), 2), (tempting_trap(), 1), (make("lock", H=7, L=3), 2)],
    ids=["t-maze", "trap", "lock"],
)
def test_it_is_not_where_windows_do_not_decode(pomdp: POMDP, window: int) -> None:
    value, tables = planned_value(pomdp, window, pomdp.horizon or 5)
    assert value < 0.8 * optimal_value(tables)


def test_a_window_that_cannot_be_has_the_reward_of_its_last_observation() -> None:
    tables = window_tables(enumerate_histories(make("lock", H=4, L=2), 2, 4))
    last = np.asarray(tables.reward[-1])
    strange = last[-tables.possible.shape[1] :]
    real = np.asarray(tables.next_window).max() + 1 - tables.possible.shape[1]
    assert tables.windows == real + tables.possible.shape[1]
    assert sorted({round(float(r), 12) for r in strange.ravel()} - {0.0}) == [0.1, 1.0]


def test_equal_actions_are_chosen_alike_and_worse_ones_never() -> None:
    q = jnp.broadcast_to(jnp.array([1.0, 0.5, 1.0]), (1, 3000, 3))
    chosen = np.bincount(np.asarray(greedy(q, jax.random.key(0))).ravel(), minlength=3)
    assert chosen[1] == 0
    assert abs(chosen[0] - 1500) < 5 * np.sqrt(750)
