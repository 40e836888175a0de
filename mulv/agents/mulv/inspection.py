"""Diagnostics of the representation and the critic on one batch, computed for each logged line."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from mulv.agents.mulv.critic import LinearCritic
from mulv.agents.mulv.representation import Latent, Representation
from mulv.core.categorical import Categorical
from mulv.core.types import Batch, Metrics


def effective_rank(phi: Float[Array, "batch feature"]) -> Float[Array, ""]:
    """(Σλ)² / Σλ² over the eigenvalues λ of φ's covariance: the effective number of dimensions of φ."""
    centred = phi - jnp.mean(phi, axis=0, keepdims=True)
    gram = centred @ centred.T  # has the covariance's non-zero eigenvalues, and fewer rows than features
    return jnp.square(jnp.trace(gram)) / (jnp.sum(jnp.square(gram)) + 1e-12)


def mean_blur(p: Latent) -> Float[Array, ""]:
    """The mean uncertainty of z: σ, or for a categorical z 1 − the largest probability."""
    if isinstance(p, Categorical):
        return jnp.mean(1 - jnp.max(jax.nn.softmax(p.logits), axis=-1))
    return jnp.mean(p.std)


def active_latents(p: Latent) -> Float[Array, ""]:
    """Dimensions of z whose mean varies over the batch by more than σ; of a categorical z, values that are
    the most likely one in some window.
    """
    if isinstance(p, Categorical):
        return jnp.sum(jnp.any(p.logits == jnp.max(p.logits, axis=-1, keepdims=True), axis=0))
    return jnp.sum(jnp.var(p.mean, axis=0) > jnp.mean(jnp.square(p.std), axis=0))


def inspect_representation(
    representation: Representation,
    critic: LinearCritic,
    data: Batch,
    repeated: Float[Array, "batch seen"],
    targets: Float[Array, "batch"],
) -> Metrics:
    """Errors of predictions from p(z | x_h, a_h) (of the first z), use of its dimensions, the critic's error.

    `repeated` is the decoder's output that would mean o_{h+1} = o_h; `targets` are the critic's targets.
    """
    code = jax.vmap(representation.encode)(data.x_h)
    p = jax.vmap(representation.p)(code, data.a_h)
    phi = jax.vmap(critic.phi)(p)
    first, latent = p[0], representation.latents[0]
    q: Latent = jax.vmap(latent.q)(code, data.a_h, data.future, first)
    kl = jnp.mean(jax.vmap(lambda q, p: q.kl(p))(q, first), axis=0)
    obs, rewards = jax.vmap(representation.predict)(first.mean, data.future.actions)
    seen = repeated.shape[1]  # what is decoded beside observations comes after them
    o_h1, r_h = data.future.obs[:, 0, :seen], data.future.rewards[:, 0]
    values = jax.vmap(critic.values)(phi)
    spread = jnp.mean(jnp.square(targets - jnp.mean(targets)))
    return {
        "representation/kl_per_latent": kl,
        "representation/blur": mean_blur(first),
        "representation/active_latents": active_latents(first),
        "representation/effective_rank": effective_rank(phi),
        # Below 1: better than predicting o_{h+1} = o_h.
        "representation/prediction_over_repeat": jnp.sum(jnp.square(o_h1 - obs[:, 0, :seen]))
        / (jnp.sum(jnp.square(o_h1 - repeated)) + 1e-8),
        "representation/reward_unexplained": jnp.mean(jnp.square(r_h - rewards[:, 0]))
        / (jnp.var(r_h) + 1e-8),
        "train/bellman_residual": jnp.mean(jnp.square(values - targets[:, None])) / (spread + 1e-8),
        "train/head_gap": jnp.mean(jnp.abs(values[:, 0] - values[:, 1])),
    }
