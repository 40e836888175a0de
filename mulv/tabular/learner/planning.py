"""Dynamic programming over windows in a model, and over histories in the truth."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from mulv.tabular.learner.tables import WindowTables
from mulv.tabular.precision import in_float64

TIE = 1e-12  # actions whose values differ by less are equally good


def plan(
    tables: WindowTables,
    probability: Float[Array, "time window act obs"],
    reward: Float[Array, "time window act"],
) -> Float[Array, "time window act"]:
    """Q_h(x_h, a_h) of the best L-step policy where o_{h+1} has this `probability` (eq. obs_bellman)."""
    return _backwards(tables.discount, reward, probability, tables.next_window)


def greedy(q: Float[Array, "time window act"], key: PRNGKeyArray) -> Int[Array, "time window"]:
    """The best action of every window; any of them where several are, so that no order of actions helps."""
    best = q >= jnp.max(q, axis=2, keepdims=True) - TIE
    return jnp.argmax(jnp.where(best, jax.random.uniform(key, q.shape), -1.0), axis=2).astype(jnp.int32)


def policy_value(tables: WindowTables, policy: Int[Array, "time window"]) -> Float[Array, ""]:
    """V^π, exactly, of a policy that reads windows."""
    acts = jnp.take_along_axis(policy, tables.window, axis=1)[:, :, None]

    def step(v: Array, each: tuple[Array, Array, Array, Array]) -> tuple[Array, None]:
        a, reward, probability, place = each
        r = jnp.take_along_axis(reward, a, axis=1)[:, 0]
        p, to = (jnp.take_along_axis(table, a[:, :, None], axis=1)[:, 0] for table in (probability, place))
        return r + tables.discount * jnp.sum(p * v[to], axis=1), None

    each = (acts, tables.history_reward, tables.probability, tables.next_history)
    v, _ = jax.lax.scan(step, jnp.zeros_like(tables.first), each, reverse=True)
    return jnp.sum(tables.first * v)


@in_float64
def optimal_value(tables: WindowTables) -> float:
    """V* of the POMDP itself, over everything a history tells."""
    q = _backwards(tables.discount, tables.history_reward, tables.probability, tables.next_history)
    return float(jnp.sum(tables.first * jnp.max(q[0], axis=1)))


def _backwards(
    discount: float,
    reward: Float[Array, "time place act"],
    probability: Float[Array, "time place act obs"],
    following: Int[Array, "time place act obs"],
) -> Float[Array, "time place act"]:
    """Value iteration from the last step to the first."""

    def step(v: Array, each: tuple[Array, Array, Array]) -> tuple[Array, Array]:
        r, p, to = each
        q = r + discount * jnp.sum(p * v[to], axis=2)
        return jnp.max(q, axis=1), q

    end = jnp.zeros(reward.shape[1], reward.dtype)
    return jax.lax.scan(step, end, (reward, probability, following), reverse=True)[1]
