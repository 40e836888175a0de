"""What trains the representation: the ELBO of what follows a window."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from mulv.agents.mulv.config import MuLVConfig
from mulv.agents.mulv.groups import CategoricalLatent
from mulv.agents.mulv.representation import Code, Latent, Representation
from mulv.core.noise import counted_normal
from mulv.core.types import Batch, Future


class ElboTerms(NamedTuple):
    """The terms of one window's negative ELBO."""

    obs: Float[Array, "steps"]  # −log p(o_{h+i+1} | z), up to a constant
    reward: Float[Array, "steps"]  # −log p(r_{h+i} | z)
    kl: Float[Array, "latent"]  # KL(q ‖ p), one term per dimension


def elbo_terms(
    model: Representation,
    p: Latent,
    q: Latent,
    future: Future,
    noise: Float[Array, "latent"],
    kl_balance: float | None,
) -> ElboTerms:
    """The terms of the negative ELBO for z ~ q and the l steps after x_h (eq. elbo)."""
    obs, rewards = model.predict(q.sample(noise), future.actions)
    obs_error = 0.5 * jnp.sum(jnp.square(future.obs - obs), axis=-1)
    reward_error = 0.5 * jnp.square(future.rewards - rewards)
    if kl_balance is None:
        kl = q.kl(p)
    else:  # the same value, with the gradient divided between p and q
        still = jax.lax.stop_gradient
        kl = kl_balance * still(q).kl(p) + (1 - kl_balance) * q.kl(still(p))
    return ElboTerms(jnp.where(future.mask, obs_error, 0.0), jnp.where(future.mask, reward_error, 0.0), kl)


def batch_elbo_terms(
    model: Representation,
    code: Code,
    p: tuple[Latent, ...] | None,
    data: Batch,
    noise: Float[Array, "batch latent"],
    kl_balance: float | None,
) -> ElboTerms:
    """`elbo_terms` of every window of a batch. Twins get a part of it each, so they cost as much as one z.

    `p` is p(z | x, a) of each z on the whole batch, where it is there anyway.
    """
    bounds = [len(data.a_h) * i // len(model.latents) for i in range(len(model.latents) + 1)]
    pairs = []
    for i, latent in enumerate(model.latents):
        own = slice(bounds[i], bounds[i + 1])
        code_i, a_i, future_i = jax.tree.map(lambda x, own=own: x[own], (code, data.a_h, data.future))
        p_i = jax.vmap(latent.p)(code_i, a_i) if p is None else jax.tree.map(lambda x, own=own: x[own], p[i])
        pairs.append((p_i, jax.vmap(latent.q)(code_i, a_i, future_i, p_i)))
    whole_p, whole_q = jax.tree.map(lambda *parts: jnp.concatenate(parts), *pairs)
    each = jax.vmap(lambda p, q, f, n: elbo_terms(model, p, q, f, n, kl_balance))
    return each(whole_p, whole_q, data.future, noise)


def representation_loss(
    config: MuLVConfig,
    model: Representation,
    code: Code,
    p: tuple[Latent, ...] | None,
    data: Batch,
    key: PRNGKeyArray,
) -> tuple[Float[Array, ""], ElboTerms]:
    """The mean negative ELBO of a batch with these codes, and its terms."""
    noise = latent_noise(config, len(data.a_h), key)
    terms = batch_elbo_terms(model, code, p, data, noise, config.elbo.kl_balance)
    return jnp.mean(jax.vmap(lambda t: negative_elbo(t, config))(terms)), terms


def negative_elbo(terms: ElboTerms, config: MuLVConfig) -> Float[Array, ""]:
    """−log p(o⁺, r | z) + β KL(q ‖ p), summed over steps and dimensions."""
    kl = jnp.maximum(jnp.sum(terms.kl), config.elbo.free_nats)
    return jnp.sum(terms.obs) + jnp.sum(terms.reward) + config.elbo.kl_weight * kl


def latent_noise(config: MuLVConfig, batch: int, key: PRNGKeyArray) -> Float[Array, "batch latent"]:
    """Noise for samples of z: normal, or Gumbel for a categorical z."""
    draw = jax.random.gumbel if isinstance(config.latent, CategoricalLatent) else counted_normal
    return draw(key, (batch, config.latent.dim))
