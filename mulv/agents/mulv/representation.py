"""The representation p(z | x_h, a_h), and what it is trained with: posterior, latent transition, decoder."""

from dataclasses import replace
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from mulv.agents.mulv.config import MuLVConfig
from mulv.agents.mulv.groups import CategoricalLatent, GaussianLatent
from mulv.agents.mulv.reader import window_reader
from mulv.core.categorical import Categorical
from mulv.core.gaussian import DiagonalNormal, squashed_std
from mulv.core.spec import EnvSpec
from mulv.core.types import Future, Window
from mulv.nets.trunk import Join, Linear, Trunk, TrunkConfig, flatten_window, standardise
from mulv.nets.window import WindowGRU

Latent = Any  # DiagonalNormal or Categorical: both have mean, sample and kl


class Code(NamedTuple):
    """What a window is to the networks that read it."""

    u: Float[Array, "width"]  # of observations and actions, so that the policy may read it too
    rewards: Float[Array, "past"]  # of the past, at unit scale; none where critics do not see them

    def beside(self, *rest: Float[Array, "_"]) -> tuple[Float[Array, "width"], Float[Array, "rest"]]:
        """u, and what is read beside it: the rewards and `rest`."""
        return self.u, jnp.concatenate([self.rewards, *rest])


class LatentNet(eqx.Module):
    """A network from the window's code u and a further vector to a distribution over z."""

    join: Join
    head: Linear
    latent_dim: int = eqx.field(static=True)
    categorical: bool = eqx.field(static=True)
    normalised: bool = eqx.field(static=True)

    def __init__(self, rest_dim: int, config: MuLVConfig, *, key: PRNGKeyArray):
        join_key, head_key = jax.random.split(key)
        latent = config.latent
        self.latent_dim = latent.dim
        self.categorical = isinstance(latent, CategoricalLatent)
        self.normalised = isinstance(latent, GaussianLatent) and latent.normalise
        self.join = Join(config.trunk.width, rest_dim, config.trunk, key=join_key)
        deviations = 0
        if isinstance(latent, GaussianLatent):
            deviations = 1 if latent.covariance == "isotropic" else latent.dim
        self.head = Linear(config.trunk.width, latent.dim + deviations, key=head_key)

    def __call__(self, u: Float[Array, "width"], rest: Float[Array, "rest"]) -> Latent:
        out = self.head(self.join(u, rest))
        if self.categorical:
            return Categorical(out)
        mean, log_std = jnp.split(out, [self.latent_dim])
        return DiagonalNormal(standardise(mean) if self.normalised else mean, squashed_std(log_std))


class LatentPair(eqx.Module):
    """p(z | x_h, a_h) and q(z | x_h, a_h, o⁺) of one z."""

    prior: LatentNet
    posterior: LatentNet | None  # None if p is used as posterior

    def __init__(self, spec: EnvSpec, config: MuLVConfig, *, key: PRNGKeyArray):
        prior_key, posterior_key = jax.random.split(key)
        future_dim = config.elbo.future * (decoded_dim(spec, config) + 1)
        rest_dim = spec.act_dim + (config.window if config.reads_rewards(spec) else 0)
        self.prior = LatentNet(rest_dim, config, key=prior_key)
        learned = config.elbo.posterior == "learned"
        self.posterior = LatentNet(rest_dim + future_dim, config, key=posterior_key) if learned else None

    def p(self, code: Code, a_h: Float[Array, "act"]) -> Latent:
        """p(z | x_h, a_h)."""
        return self.prior(*code.beside(a_h))

    def q(self, code: Code, a_h: Float[Array, "act"], future: Future, p: Latent) -> Latent:
        """q(z | x_h, a_h, o⁺), or p if there is no learned posterior."""
        if self.posterior is None:
            return p
        seen = [future.obs.ravel(), future.mask.astype(jnp.float32)]
        return self.posterior(*code.beside(a_h, *seen))


class Transition(eqx.Module):
    """The latent transition: a deterministic map from (z, a) to z'."""

    trunk: Trunk
    head: Linear
    categorical: bool = eqx.field(static=True)

    def __init__(self, act_dim: int, config: MuLVConfig, *, key: PRNGKeyArray):
        trunk_key, head_key = jax.random.split(key)
        self.categorical = isinstance(config.latent, CategoricalLatent)
        in_dim, trunk = config.latent.dim + act_dim, decoder_trunk(config)
        self.trunk = Trunk(in_dim, trunk, key=trunk_key)
        self.head = Linear(Trunk.out_dim(in_dim, trunk), config.latent.dim, key=head_key)

    def __call__(self, z: Float[Array, "latent"], a: Float[Array, "act"]) -> Float[Array, "latent"]:
        change = self.head(self.trunk(jnp.concatenate([z, a])))
        return jax.nn.softmax(change) if self.categorical else z + change


class Decoder(eqx.Module):
    """Means of p(o_{h+1} | z) and p(r_h | z)."""

    trunk: Trunk
    obs_head: Linear
    reward_head: Linear

    def __init__(self, said_dim: int, config: MuLVConfig, *, key: PRNGKeyArray):
        trunk_key, obs_key, reward_key = jax.random.split(key, 3)
        trunk = decoder_trunk(config)
        self.trunk = Trunk(config.latent.dim, trunk, key=trunk_key)
        width = Trunk.out_dim(config.latent.dim, trunk)
        self.obs_head = Linear(width, said_dim, key=obs_key)
        self.reward_head = Linear(width, 1, key=reward_key)

    def __call__(self, z: Float[Array, "latent"]) -> tuple[Float[Array, "said"], Float[Array, ""]]:
        hidden = self.trunk(z)
        return self.obs_head(hidden), self.reward_head(hidden)[0]


def decoded_dim(spec: EnvSpec, config: MuLVConfig) -> int:
    """How many numbers the decoder says of a step: of the observation, the episode's end, the next code."""
    code = Trunk.out_dim(0, config.trunk) if config.elbo.code_weight else 0
    return spec.obs_dim * sum(config.elbo.decodes) + bool(config.elbo.end_weight) + code


def decoder_trunk(config: MuLVConfig) -> TrunkConfig:
    """The trunk of networks whose input is z."""
    return replace(config.trunk, depth=config.elbo.decoder_depth)


class Representation(eqx.Module):
    """p(z | x_h, a_h), q(z | x_h, a_h, o⁺), and the decoder of l future steps (eq. obs_dynamics).

    There may be twin latents, one z for each critic, which share everything else.

    Decoders are Gaussians of unit variance, on whitened observations and rewards of unit mean square. The
    latent transition is deterministic, so that the likelihood of l steps given z is exact. Observations and
    actions enter through their code u, which is also the actor's input, and past rewards beside it.
    """

    encoder: Trunk
    recurrence: WindowGRU | None  # reads the window for the encoder, where there is one
    latents: tuple[LatentPair, ...]
    decoder: Decoder
    transition: Transition | None  # None if z explains one step only
    sees_rewards: bool = eqx.field(static=True)

    def __init__(self, spec: EnvSpec, config: MuLVConfig, *, key: PRNGKeyArray):
        encoder_key, latent_key, decoder_key, transition_key = jax.random.split(key, 4)
        self.recurrence, in_dim = window_reader(spec, config, key=jax.random.fold_in(encoder_key, 1))
        self.encoder = Trunk(in_dim, config.trunk, key=encoder_key)
        self.sees_rewards = config.reads_rewards(spec)
        keys = jax.random.split(latent_key, 2 if config.latent.twins else 1)
        self.latents = tuple(LatentPair(spec, config, key=k) for k in keys)
        self.decoder = Decoder(decoded_dim(spec, config), config, key=decoder_key)
        self.transition = (
            Transition(spec.act_dim, config, key=transition_key) if config.elbo.future > 1 else None
        )

    def encode(self, x_h: Window) -> Code:
        """The window's code."""
        u = self.encoder((self.recurrence or flatten_window)(x_h))
        return Code(u, x_h.rewards if self.sees_rewards else x_h.rewards[:0])

    def p(self, code: Code, a_h: Float[Array, "act"]) -> tuple[Latent, ...]:
        """p(z | x_h, a_h) of each z, given the window's code: the representation."""
        return tuple(latent.p(code, a_h) for latent in self.latents)

    def predict(
        self, z: Float[Array, "latent"], actions: Float[Array, "steps act"]
    ) -> tuple[Float[Array, "steps said"], Float[Array, "steps"]]:
        """Predicted observations and rewards from z; `actions[0]` is a_h, which z already depends on."""
        if self.transition is None:  # without an axis of one step, whose sums XLA makes slowly on a CPU
            obs, reward = self.decoder(z)
            return obs[None], reward[None]
        latents = [z]
        for a in actions[1:]:
            latents.append(self.transition(latents[-1], a))
        return jax.vmap(self.decoder)(jnp.stack(latents))  # all steps in one matrix product
