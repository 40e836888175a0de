"""Algorithm 1: its datasets, and that its bonus opens a lock that nothing else here opens."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mulv.core.errors import MulvError
from mulv.tabular.learner.algorithms import Settings, solve
from mulv.tabular.learner.collect import collect, episodes, no_data
from mulv.tabular.learner.planning import optimal_value, policy_value
from mulv.tabular.learner.regret import Curve, learn, methods
from mulv.tabular.learner.tables import window_tables
from mulv.tabular.precision import in_float64
from mulv.tabular.windows import enumerate_histories, history_occupancy
from mulv.tabular.zoo import make
from tests.tabular.learning import infinite_data, lock_tables
from tests.tabular.models import generic

SIZES = {"H": 8, "L": 2, "actions": 4}  # a uniform policy opens it once in 4⁷ = 16,384 episodes
ROUNDS, SEEDS = 125, 4  # 1,000 episodes
solve_of, value_of = eqx.filter_jit(solve), eqx.filter_jit(policy_value)


def learned(method: str, **window: int) -> Curve:
    return learn(lock_tables(**SIZES, **window), method, methods(0.1)[method], rounds=ROUNDS, seeds=SEEDS)


def test_the_bonus_opens_the_lock_and_without_it_nobody_does() -> None:
    optimist, plain = learned("bonus"), learned("no-bonus")
    assert np.all(optimist.values[:, -1] == pytest.approx(optimist.optimum))
    assert np.all(plain.values < 0.5 * plain.optimum)


def test_a_window_shorter_than_l_does_not_open_it() -> None:
    curve = learned("bonus", window=1)
    assert np.all(curve.values < 0.5 * curve.optimum)


def test_one_seed_is_the_same_alone_and_for_longer() -> None:
    tables, method = lock_tables(**SIZES), methods(0.1)["bonus"]
    all_of_them = learn(tables, "bonus", method, rounds=60, seeds=SEEDS).values
    assert np.array_equal(learn(tables, "bonus", method, rounds=30, seeds=SEEDS).values, all_of_them[:, :30])
    assert len({row.tobytes() for row in all_of_them}) == SEEDS


@in_float64
def test_a_round_fills_the_datasets_as_the_algorithm_says() -> None:
    tables = lock_tables(H=5, L=2, actions=3)
    policy = jnp.zeros((5, tables.windows), jnp.int32)
    data = collect(tables, no_data(tables), policy, everywhere=jnp.array(False), key=jax.random.key(0))
    assert np.asarray(data.visits).sum(axis=(1, 2)).tolist() == [1] * 5  # D_h: one each
    in_both = np.asarray(data.counts).sum(axis=(1, 2, 3))
    assert in_both.tolist() == [
        1,
        2,
        3,
        3,
        3,
    ]  # and in D'_h those of the L episodes that turned uniform before h
    assert np.all(np.asarray(data.counts).sum(axis=3) >= np.asarray(data.visits))


@in_float64
def test_rolling_in_follows_the_policy_and_then_acts_uniformly() -> None:
    histories = enumerate_histories(generic(3), 2, 4)
    tables = window_tables(histories)
    policy = np.random.default_rng(0).integers(2, size=(4, tables.windows)).astype(np.int32)
    rounds = 4000

    @eqx.filter_jit
    def visits(policy: jax.Array, keys: jax.Array) -> jax.Array:
        def one(key: jax.Array) -> jax.Array:
            return collect(tables, no_data(tables), policy, everywhere=jnp.array(False), key=key).visits

        return jnp.sum(jax.lax.map(one, keys, batch_size=500), axis=0)

    seen = np.asarray(visits(jnp.asarray(policy), jax.random.split(jax.random.key(1), rounds)))
    rows = [np.eye(2)[policy[h, layer.window]] for h, layer in enumerate(histories.layers)]
    for h, (layer, d) in enumerate(zip(histories.layers, history_occupancy(histories, rows), strict=True)):
        expected = np.zeros((tables.windows, 2))
        np.add.at(expected, layer.window, rounds * d[:, None] / 2)
        assert np.all(np.abs(seen[h] - expected) <= 5 * np.sqrt(expected) + 1e-9)


@in_float64
def test_episodes_are_those_of_the_process() -> None:
    """The mean return of simulated episodes is the exact value."""
    tables = window_tables(enumerate_histories(generic(5), 2, 4))
    policy = jnp.asarray(np.random.default_rng(0).integers(2, size=(4, tables.windows)), jnp.int32)
    went = eqx.filter_jit(episodes)(tables, policy, jnp.zeros((5000, 4), bool), jax.random.key(1))
    returns = np.asarray(went.reward) @ tables.discount ** np.arange(4)
    error = returns.std() / np.sqrt(len(returns))
    assert abs(returns.mean() - float(value_of(tables, policy))) < 5 * error


@in_float64
def test_with_infinite_data_the_learned_model_plans_optimally() -> None:
    histories = enumerate_histories(make("lock", H=6, L=3), 3, 6)
    tables = window_tables(histories)
    data = infinite_data(histories, tables)
    policies = [
        solve_of(tables, Settings(alpha=0.0), each, +1, jax.random.key(0)) for each in (data, no_data(tables))
    ]
    informed, ignorant = (float(value_of(tables, policy)) for policy in policies)
    assert informed == pytest.approx(optimal_value(tables), abs=1e-12)
    assert ignorant < 0.5 * optimal_value(tables)


def test_regret_and_episodes_are_counted_from_the_values() -> None:
    curve = Curve("bonus", 10, 2.0, np.array([[0.5, 1.0, 2.0], [0.0, 0.0, 0.9]]))
    np.testing.assert_allclose(curve.regret, [[1.5, 2.5, 2.5], [2.0, 4.0, 5.1]])
    assert curve.episodes_to().tolist() == [20, np.inf]
    assert curve.episodes_to(1.0).tolist() == [30, np.inf]


@pytest.mark.parametrize("alpha", [0.0, -1.0, float("nan")])
def test_a_bonus_that_is_none_is_refused(alpha: float) -> None:
    with pytest.raises(MulvError, match="positive"):
        methods(alpha)
