"""Normalises a batch for the networks, and splits it into parts."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from mulv.agents.base import normalise_window, past_rewards, reward_scale
from mulv.agents.mulv.config import MuLVConfig
from mulv.core.memory import push
from mulv.core.normalise import ObsMoments, RunningMoments
from mulv.core.types import Batch, Future, Window
from mulv.nets.trunk import standardise


def see_window(
    config: MuLVConfig, obs_moments: ObsMoments, reward_moments: RunningMoments, x: Window
) -> Window:
    """The window as representation and critic read it."""
    rewards = past_rewards(config, reward_moments, x)
    if config.recurrence is not None:
        return obs_moments.levels_and_changes(x)._replace(rewards=rewards)
    return normalise_window(config, obs_moments, x)._replace(rewards=rewards)


def normalise_batch(
    config: MuLVConfig, obs_moments: ObsMoments, reward_moments: RunningMoments, batch: Batch
) -> Batch:
    """The batch with whitened windows, scaled rewards, and decoder targets of unit mean square."""
    future = batch.future
    before = jnp.concatenate([batch.x_h.obs[:, -1:], future.obs[:, :-1]], axis=1)
    obs = decoded(
        config,
        obs_moments.change.scale(future.obs - before),
        obs_moments.level.whiten(future.obs) if config.normalise_observations else future.obs,
    )
    obs = jnp.where(future.mask[..., None], obs, 0.0)
    if config.elbo.end_weight:  # whether the episode ends, as 0 or √weight
        ends = config.elbo.end_weight**0.5 * future.terminated[..., None]
        obs = jnp.concatenate([obs, ends], axis=-1)
    return batch._replace(
        x_h=see_window(config, obs_moments, reward_moments, batch.x_h),
        x_hn=see_window(config, obs_moments, reward_moments, batch.x_hn),
        reward=batch.reward / reward_scale(config, reward_moments),
        future=future._replace(obs=obs, rewards=reward_moments.scale(future.rewards)),
    )


def decoded(
    config: MuLVConfig, changes: Float[Array, "... obs"], levels: Float[Array, "... obs"]
) -> Float[Array, "... said"]:
    """What the decoder is to say of observations: their changes, their levels, or both."""
    shown = zip((changes, levels), config.elbo.decodes, strict=True)
    return jnp.concatenate([values for values, wanted in shown if wanted], axis=-1)


def following_windows(x_h: Window, future: Future) -> Window:
    """x_{h+1} … x_{h+l} along a new axis of steps, for a batch of windows and what follows them."""
    windows = [x_h]
    for a, r, o in zip(
        *(jnp.moveaxis(f, 1, 0) for f in (future.actions, future.rewards, future.obs)), strict=True
    ):
        windows.append(jax.vmap(push)(windows[-1], a, r, o))
    return jax.tree.map(lambda *leaves: jnp.stack(leaves, axis=1), *windows[1:])


def with_codes(config: MuLVConfig, data: Batch, codes: Float[Array, "batch steps width"]) -> Batch:
    """The batch with the codes of the windows that follow among what the decoder is to say."""
    # Each entry of a code has unit variance, and all of them count as much as `code_weight` entries.
    code = (config.elbo.code_weight / codes.shape[-1]) ** 0.5 * jax.vmap(jax.vmap(standardise))(codes)
    shown = jnp.where(data.future.mask[..., None], code, 0.0)
    obs = jnp.concatenate([data.future.obs, jax.lax.stop_gradient(shown)], axis=-1)
    return data._replace(future=data.future._replace(obs=obs))


def denormalise_prediction(
    config: MuLVConfig,
    obs_moments: ObsMoments,
    o_h: Float[Array, "batch obs"],
    said: Float[Array, "batch said"],
) -> Float[Array, "batch obs"]:
    """The observation o_{h+1} for the decoder's output `said`: the inverse of `normalise_batch`."""
    if config.elbo.predict_changes:
        return o_h + obs_moments.change.unscale(said[:, : o_h.shape[1]])
    level = said[:, : o_h.shape[1]]
    return obs_moments.level.unwhiten(level) if config.normalise_observations else level


def part(batch: Batch, number: int, size: int) -> Batch:
    """Part `number` of a batch that is split into parts of `size` rows."""
    return jax.tree.map(lambda leaf: leaf[number * size : (number + 1) * size], batch)
