"""Episodes over windows, and the datasets of the paper as counts."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from mulv.tabular.learner.tables import WindowTables


class Steps(NamedTuple):
    """What one or many episodes went through: x_h, a_h, and which outcome o_{h+1} was."""

    window: Int[Array, "*batch time"]
    action: Int[Array, "*batch time"]
    outcome: Int[Array, "*batch time"]
    reward: Float[Array, "*batch time"]


class WindowData(NamedTuple):
    """The datasets, which matter only by how often each of their members occurs."""

    visits: Float[Array, "time window act"]  # of (x_h, a_h) in D_h: the covariance is of these
    counts: Float[
        Array, "time window act obs"
    ]  # of (x_h, a_h, o_{h+1}) in D_h and D'_h: the model fits these


def no_data(tables: WindowTables) -> WindowData:
    """Before the first episode."""
    return WindowData(jnp.zeros_like(tables.reward), jnp.zeros(tables.next_window.shape, tables.reward.dtype))


def episodes(
    tables: WindowTables,
    policy: Int[Array, "time window"],
    uniform: Bool[Array, "batch time"],
    key: PRNGKeyArray,
) -> Steps:
    """Episodes of `policy`, each of which acts uniformly at the steps that `uniform` names.

    All their randomness is drawn at once: a generator inside the loop takes longer to compile than the rest.
    """
    draws = jax.random.uniform(key, (uniform.shape[0], tables.horizon + 1, 2), tables.reward.dtype)

    def step(history: Array, each: tuple[Array, ...]) -> tuple[Array, Steps]:
        uniform_h, policy_h, window, probability, next_history, reward, draw = each
        x = window[history]
        a = jnp.where(uniform_h, jnp.floor(draw[0] * tables.actions).astype(jnp.int32), policy_h[x])
        o = _pick(probability[history, a], draw[1])
        return next_history[history, a, o], Steps(x, a, o, reward[history, a])

    def one(uniform: Array, draws: Array) -> Steps:
        start = _pick(tables.first, draws[0, 1])
        true = (tables.window, tables.probability, tables.next_history, tables.history_reward)
        return jax.lax.scan(step, start, (uniform, policy, *true, draws[1:]))[1]

    return jax.vmap(one)(uniform, draws)


def _pick(probability: Float[Array, "n"], draw: Float[Array, ""]) -> Int[Array, ""]:
    """The place where the running sum passes `draw`; never one of probability zero."""
    running = jnp.cumsum(probability)
    return jnp.sum(running <= draw * running[-1], dtype=jnp.int32)


def collect(
    tables: WindowTables,
    data: WindowData,
    policy: Int[Array, "time window"],
    *,
    everywhere: Bool[Array, ""],
    key: PRNGKeyArray,
) -> WindowData:
    """`data` with the H episodes that Algorithm 1 adds in one round.

    Episode h follows the policy (or acts uniformly `everywhere`) up to x_h; then a_h, …, a_{h+L} are uniform.
    (x_h, a_h, o_{h+1}) goes to D_h and the L transitions after it to D'.
    """
    steps = jnp.arange(tables.horizon)
    since = steps[None] - steps[:, None]  # (episode h, step): how long after x_h
    tail = (since >= 0) & (since <= tables.length)
    went = episodes(tables, policy, (since >= 0) | everywhere, key)
    place = (jnp.broadcast_to(steps, since.shape), went.window, went.action)
    return WindowData(
        data.visits.at[place].add((since == 0).astype(data.visits.dtype)),
        data.counts.at[(*place, went.outcome)].add(tail.astype(data.counts.dtype)),
    )


def record(
    tables: WindowTables,
    policy: Int[Array, "time window"],
    uniform: Bool[Array, "batch time"],
    key: PRNGKeyArray,
) -> WindowData:
    """An offline dataset: every transition of such `episodes` is in its D_h."""
    went = episodes(tables, policy, uniform, key)
    empty = no_data(tables)
    place = (jnp.broadcast_to(jnp.arange(tables.horizon), uniform.shape), went.window, went.action)
    return WindowData(empty.visits.at[place].add(1.0), empty.counts.at[(*place, went.outcome)].add(1.0))
