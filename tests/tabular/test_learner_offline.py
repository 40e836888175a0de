"""Algorithm 2: pessimism keeps to what the data cover, and costs nothing where they cover all."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mulv.tabular.learner.algorithms import Settings, learn_offline
from mulv.tabular.learner.collect import WindowData, record
from mulv.tabular.learner.planning import optimal_value, plan, policy_value
from mulv.tabular.learner.tables import WindowTables, window_tables
from mulv.tabular.precision import in_float64
from mulv.tabular.windows import enumerate_histories
from tests.tabular.learning import infinite_data
from tests.tabular.models import tempting_trap

H = 6
offline, value_of = eqx.filter_jit(learn_offline), eqx.filter_jit(policy_value)


@in_float64
def trap() -> tuple[WindowTables, jax.Array]:
    """The trap in tables, and the policy that goes on for as long as it may."""
    histories = enumerate_histories(tempting_trap(), 2, H)
    tables = window_tables(histories)
    data = infinite_data(histories, tables)
    model = data.counts / jnp.maximum(data.visits, 1e-300)[..., None]
    best = jnp.argmax(eqx.filter_jit(plan)(tables, model, tables.reward), axis=2)
    return tables, best.astype(jnp.int32)


@in_float64
def dataset(
    tables: WindowTables, policy: jax.Array, *, uniform: bool, episodes: int, seed: int
) -> WindowData:
    return eqx.filter_jit(record)(tables, policy, jnp.full((episodes, H), uniform), jax.random.key(seed))


@in_float64
def values(tables: WindowTables, data: WindowData, alpha: float) -> float:
    policy = offline(tables, Settings(alpha=alpha), data, jax.random.key(0))
    return float(value_of(tables, policy))


@pytest.mark.parametrize("seed", range(3))
def test_pessimism_keeps_to_data_of_the_best_policy_and_without_it_the_trap_shuts(seed: int) -> None:
    tables, best = trap()
    data = dataset(tables, best, uniform=False, episodes=200, seed=seed)
    assert optimal_value(tables) == pytest.approx(0.5 * (H - 1) + 0.6)
    careful, careless = (values(tables, data, alpha) for alpha in (1.0, 0.0))
    assert careful >= 0.5 * H - 1e-9
    assert careless <= 0.6 + 1e-9


@pytest.mark.parametrize("seed", range(3))
def test_where_data_cover_everything_the_penalty_does_not_help(seed: int) -> None:
    tables, best = trap()
    data = dataset(tables, best, uniform=True, episodes=8000, seed=seed)
    careful, careless = (values(tables, data, alpha) for alpha in (0.3, 0.0))
    assert careless == pytest.approx(optimal_value(tables))
    assert careful <= careless + 1e-12


@in_float64
def test_pessimism_cannot_find_what_no_data_show() -> None:
    """Data of a policy that walks into the trap: there is nothing better to keep to."""
    tables, best = trap()
    data = dataset(tables, 1 - best, uniform=False, episodes=200, seed=0)
    assert values(tables, data, 1.0) < 0.5 * optimal_value(tables)
    assert np.asarray(data.counts).sum() == 200 * H
