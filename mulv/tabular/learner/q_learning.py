"""ε-greedy Q-learning over windows: exploration that knows nothing of what it does not know."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from mulv.tabular.learner.collect import episodes
from mulv.tabular.learner.planning import greedy, policy_value
from mulv.tabular.learner.tables import WindowTables


class QLearning(eqx.Module):
    """What it is given."""

    epsilon: Float[Array, ""] | float = eqx.field(converter=np.asarray, default=0.1)


class QTable(NamedTuple):
    """What it has learned, and in how many rounds it has met each pair."""

    q: Float[Array, "time window act"]
    met: Float[Array, "time window act"]


def begin_q_learning(tables: WindowTables) -> QTable:
    """Nothing is worth anything yet."""
    return QTable(jnp.zeros_like(tables.reward), jnp.zeros_like(tables.reward))


def q_learning_round(
    tables: WindowTables, settings: QLearning, state: QTable, key: PRNGKeyArray
) -> tuple[QTable, Float[Array, ""]]:
    """H episodes, as a round of Algorithm 1 has; then each pair moves towards the mean of its targets.

    Steps are updated from the last to the first, so that a reward found is known at once along its episode.
    The step size is (H + 1) / (H + n), n rounds after a pair was first met (Jin et al., 2018).
    """
    horizon = tables.horizon
    tie_key, explore_key, episode_key, after_key = jax.random.split(key, 4)
    policy = greedy(state.q, tie_key)
    explore = jax.random.bernoulli(explore_key, settings.epsilon, (horizon, horizon))
    went = episodes(tables, policy, explore, episode_key)

    def step(v: Array, each: tuple[Array, ...]) -> tuple[Array, tuple[Array, Array]]:
        q, met, following, x, a, o, r = each
        target = r + tables.discount * v[following[x, a, o]]
        times = jnp.zeros_like(q).at[x, a].add(1.0)
        mean = jnp.zeros_like(q).at[x, a].add(target) / jnp.maximum(times, 1.0)
        met = met + (times > 0)
        size = (horizon + 1) / (horizon + met)
        q = jnp.where(times > 0, q + size * (mean - q), q)
        return jnp.max(q, axis=1), (q, met)

    each = (*state, tables.next_window, went.window.T, went.action.T, went.outcome.T, went.reward.T)
    end = jnp.zeros(tables.windows, tables.reward.dtype)
    _, (q, met) = jax.lax.scan(step, end, each, reverse=True)
    return QTable(q, met), policy_value(tables, greedy(q, after_key))
