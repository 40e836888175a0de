"""Algorithm 1 (online, optimism) and Algorithm 2 (offline, pessimism).

Both learn the latent variable model from counts, measure by ‖p̂(· | x, a)‖_{Σ⁻¹} how little is known, and plan
by dynamic programming over windows in the learned model: with r + b̂ online, with r − b̂ offline.
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from mulv.tabular.learner.bonus import elliptical_bonus
from mulv.tabular.learner.collect import WindowData, collect, no_data
from mulv.tabular.learner.latent_model import fit
from mulv.tabular.learner.planning import greedy, plan, policy_value
from mulv.tabular.learner.tables import WindowTables


class Settings(eqx.Module):
    """What both algorithms are given. The numbers are arrays, so that other ones need no compilation."""

    alpha: Float[Array, ""] | float = eqx.field(converter=np.asarray, default=1.0)  # 0: no bonus, no penalty
    regularisation: Float[Array, ""] | float = eqx.field(converter=np.asarray, default=1.0)  # λ
    latents: int = eqx.field(static=True, default=3)  # values of z, besides that of unseen pairs
    em_steps: int = eqx.field(static=True, default=10)


class Online(NamedTuple):
    """What Algorithm 1 carries from one round to the next: D, D' and π_k."""

    data: WindowData
    policy: Int[Array, "time window"]
    rounds: Int[Array, ""]


def solve(
    tables: WindowTables, settings: Settings, data: WindowData, sign: int, key: PRNGKeyArray
) -> Int[Array, "time window"]:
    """argmax_π V^π in the model learned from `data`, with the reward r + sign · b̂."""
    model = fit(data.counts, tables.possible, latents=settings.latents, steps=settings.em_steps)
    features = model.prior.reshape(tables.horizon, -1, settings.latents + 1)
    visits = data.visits.reshape(tables.horizon, -1)
    bonus = jax.vmap(lambda f, n: elliptical_bonus(f, n, settings.alpha, settings.regularisation))(
        features, visits
    )
    reward = tables.reward + sign * bonus.reshape(tables.reward.shape)
    return greedy(plan(tables, model.probability(), reward), key)


def begin_online(tables: WindowTables) -> Online:
    """No data; π_0 is uniform, which `rounds` says."""
    return Online(no_data(tables), jnp.zeros((tables.horizon, tables.windows), jnp.int32), jnp.int32(0))


def online_round(
    tables: WindowTables, settings: Settings, state: Online, key: PRNGKeyArray
) -> tuple[Online, Float[Array, ""]]:
    """Round k of Algorithm 1: H episodes, the model, the bonus, π_k; and V^{π_k}, exactly."""
    collect_key, tie_key = jax.random.split(key)
    data = collect(tables, state.data, state.policy, everywhere=state.rounds == 0, key=collect_key)
    policy = solve(tables, settings, data, +1, tie_key)
    return Online(data, policy, state.rounds + 1), policy_value(tables, policy)


def learn_offline(
    tables: WindowTables, settings: Settings, data: WindowData, key: PRNGKeyArray
) -> Int[Array, "time window"]:
    """Algorithm 2: π̂* of a fixed dataset; `key` chooses among actions that are equally good."""
    return solve(tables, settings, data, -1, key)
