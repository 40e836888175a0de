"""Features φ(x, a) of p(z | x, a), in which Q is linear: random features, networks, or enumeration."""

from collections.abc import Callable
from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from mulv.agents.mulv.config import MuLVConfig
from mulv.agents.mulv.groups import (
    CategoricalLatent,
    ClosedFormConfig,
    DeepConfig,
    DistributionConfig,
    MonteCarloConfig,
    NetworkConfig,
)
from mulv.core.categorical import Categorical
from mulv.core.features import RandomFeatures
from mulv.core.gaussian import DiagonalNormal
from mulv.core.targets import Bins
from mulv.nets.trunk import Linear, Trunk, TrunkConfig


class ClosedForm(eqx.Module):
    """φ = E_{z~p}[ψ(z)], exactly."""

    psi: RandomFeatures
    trained: bool = eqx.field(static=True)

    def __init__(self, options: ClosedFormConfig, latent_dim: int, *, key: PRNGKeyArray):
        self.psi = draw_features(options, latent_dim, key)
        self.trained = options.train_frequencies

    def __call__(self, p: DiagonalNormal) -> Float[Array, "feature"]:
        return frozen_unless(self.trained, self.psi).mean(p)


class MonteCarlo(eqx.Module):
    """φ ≈ the mean of ψ over samples of z, with the same noise for every window."""

    psi: RandomFeatures
    noise: Float[Array, "sample latent"]
    trained: bool = eqx.field(static=True)

    def __init__(self, options: MonteCarloConfig, latent_dim: int, *, key: PRNGKeyArray):
        psi_key, noise_key = jax.random.split(key)
        self.psi = draw_features(options, latent_dim, psi_key)
        self.noise = jax.random.normal(noise_key, (options.samples, latent_dim))
        self.trained = options.train_frequencies

    def __call__(self, p: DiagonalNormal) -> Float[Array, "feature"]:
        z = jax.vmap(p.sample)(jax.lax.stop_gradient(self.noise))
        return jnp.mean(jax.vmap(frozen_unless(self.trained, self.psi).at)(z), axis=0)


class Deep(eqx.Module):
    """The published architecture: a layer averaged over samples of z, then a second layer.

    So Q is not linear in p(z | x, a).
    """

    first: Linear
    second: Linear
    noise: Float[Array, "sample latent"]

    def __init__(self, options: DeepConfig, latent_dim: int, width: int, *, key: PRNGKeyArray):
        first_key, second_key, noise_key = jax.random.split(key, 3)
        self.first = Linear(latent_dim, width, key=first_key)
        self.second = Linear(width, width, key=second_key)
        self.noise = jax.random.normal(noise_key, (options.samples, latent_dim))

    def __call__(self, p: DiagonalNormal) -> Float[Array, "feature"]:
        z = jax.vmap(p.sample)(jax.lax.stop_gradient(self.noise))
        return jax.nn.elu(self.second(jnp.mean(jax.nn.elu(jax.vmap(self.first)(z)), axis=0)))


class Network(eqx.Module):
    """φ = E_{z~p}[h(z)] with a network h, by antithetic samples of z from the same noise for all windows."""

    trunk: Trunk
    noise: Float[Array, "sample latent"] | None  # None for the mean of z alone

    def __init__(
        self,
        options: NetworkConfig | DistributionConfig,
        latent_dim: int,
        trunk: TrunkConfig,
        *,
        key: PRNGKeyArray,
    ):
        trunk_key, noise_key = jax.random.split(key)
        self.trunk = Trunk(latent_dim, replace(trunk, depth=options.depth), key=trunk_key)
        half = jax.random.normal(noise_key, (options.samples // 2, latent_dim))
        middle = jnp.zeros((options.samples % 2, latent_dim))
        self.noise = jnp.concatenate([half, -half, middle]) if options.samples > 1 else None

    def expect(
        self, of: Callable[[Float[Array, "feature"]], Float[Array, "out"]], p: DiagonalNormal
    ) -> Float[Array, "out"]:
        """E_{z~p}[of(h(z))]."""
        if self.noise is None:  # without an axis of one sample, whose sums XLA makes slowly on a CPU
            return of(self.trunk(p.mean))
        z = jax.vmap(p.sample)(jax.lax.stop_gradient(self.noise))
        return jnp.mean(jax.vmap(lambda one: of(self.trunk(one)))(z), axis=0)

    def __call__(self, p: DiagonalNormal) -> Float[Array, "feature"]:
        return self.expect(lambda hidden: hidden, p)


class Distribution(eqx.Module):
    """φ = P(G ∈ bin | x, a) = E_{z~p}[P(G ∈ bin | z)]: the distribution of the return G, also linear in p."""

    hidden: Network
    logits: Linear
    bins: Bins
    sigma: float = eqx.field(static=True)

    def __init__(
        self, options: DistributionConfig, latent_dim: int, trunk: TrunkConfig, *, key: PRNGKeyArray
    ):
        hidden_key, logits_key = jax.random.split(key)
        self.hidden = Network(options, latent_dim, trunk, key=hidden_key)
        self.logits = Linear(trunk.width, options.bins, key=logits_key, scale=0.01)
        self.bins, self.sigma = Bins(options.low, options.high, options.bins), options.sigma

    def __call__(self, p: DiagonalNormal) -> Float[Array, "feature"]:
        return self.hidden.expect(lambda hidden: jax.nn.softmax(self.logits(hidden)), p)

    def loss(self, phi: Float[Array, "feature"], target: Float[Array, ""]) -> Float[Array, ""]:
        """Cross-entropy between the target, as a Gaussian over the bins, and φ."""
        return -jnp.sum(self.bins.hl_gauss(target, self.sigma) * jnp.log(phi + 1e-8))


class Enumerated(eqx.Module):
    """A finite latent: φ(x, a) is the vector p(· | x, a) itself."""

    def __call__(self, p: Categorical) -> Float[Array, "feature"]:
        return p.mean


def draw_features(options: ClosedFormConfig, latent_dim: int, key: PRNGKeyArray) -> RandomFeatures:
    """Random features, with a kernel width relative to the distance between latents of unit variance."""
    lengthscale = options.lengthscale * latent_dim**0.5
    return RandomFeatures(latent_dim, options.features, options.family, lengthscale, key=key)


def frozen_unless(trained: bool, psi: RandomFeatures) -> RandomFeatures:
    """The features, without a gradient unless they are trained."""
    return psi if trained else jax.lax.stop_gradient(psi)


Embedding = ClosedForm | MonteCarlo | Deep | Network | Distribution | Enumerated


def draw_embedding(config: MuLVConfig, key: PRNGKeyArray) -> tuple[Embedding, int]:
    """The embedding of a configuration, and its number of features."""
    options, latent_dim, trunk = config.critic, config.latent.dim, config.trunk
    if isinstance(config.latent, CategoricalLatent):
        return Enumerated(), latent_dim
    if isinstance(options, DeepConfig):
        return Deep(options, latent_dim, trunk.width, key=key), trunk.width
    if isinstance(options, NetworkConfig):
        return Network(options, latent_dim, trunk, key=key), trunk.width
    if isinstance(options, DistributionConfig):
        return Distribution(options, latent_dim, trunk, key=key), options.bins
    if isinstance(options, MonteCarloConfig):
        return MonteCarlo(options, latent_dim, key=key), options.features
    return ClosedForm(options, latent_dim, key=key), options.features
