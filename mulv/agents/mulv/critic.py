"""The critic Q(x, a) = ⟨φ(x, a), w⟩, and least squares policy evaluation."""

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from mulv.agents.mulv.config import MuLVConfig
from mulv.agents.mulv.groups import (
    CategoricalLatent,
    ClosedFormConfig,
    DeepConfig,
    MonteCarloConfig,
    NetworkConfig,
)
from mulv.agents.mulv.policy import QFunction
from mulv.agents.mulv.representation import Latent, Representation
from mulv.core.categorical import Categorical
from mulv.core.features import RandomFeatures
from mulv.core.gaussian import DiagonalNormal
from mulv.core.types import Window
from mulv.nets.trunk import Linear, Trunk, TrunkConfig

Added = Callable[[Float[Array, "batch feature"]], Float[Array, "batch"]]  # to ⟨φ, w⟩, by φ
HEADS = 2


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
    """φ ≈ the mean of ψ over samples of z, made from the same noise for every window."""

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
    """The published architecture: a layer averaged over samples of z, then another.

    Its values are not linear in p(z | x, a).
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
    """φ = E_{z~p}[h(z)], h a network: over mirrored samples of z, from the same noise for every window."""

    trunk: Trunk
    noise: Float[Array, "sample latent"]

    def __init__(self, options: NetworkConfig, latent_dim: int, trunk: TrunkConfig, *, key: PRNGKeyArray):
        trunk_key, noise_key = jax.random.split(key)
        self.trunk = Trunk(latent_dim, replace(trunk, depth=options.depth), key=trunk_key)
        half = jax.random.normal(noise_key, (options.samples // 2, latent_dim))
        middle = jnp.zeros((options.samples % 2, latent_dim))
        self.noise = jnp.concatenate([half, -half, middle])

    def __call__(self, p: DiagonalNormal) -> Float[Array, "feature"]:
        z = jax.vmap(p.sample)(jax.lax.stop_gradient(self.noise))
        return jnp.mean(jax.vmap(self.trunk)(z), axis=0)


class Enumerated(eqx.Module):
    """A finite latent: φ(x, a) is the vector p(· | x, a) itself."""

    def __call__(self, p: Categorical) -> Float[Array, "feature"]:
        return p.mean


def draw_features(options: ClosedFormConfig, latent_dim: int, key: PRNGKeyArray) -> RandomFeatures:
    """ω and b, with a kernel as wide as the distance between latents of unit variance."""
    lengthscale = options.lengthscale * latent_dim**0.5
    return RandomFeatures(latent_dim, options.features, options.family, lengthscale, key=key)


def _embedding(
    options: ClosedFormConfig | MonteCarloConfig, latent_dim: int, key: PRNGKeyArray
) -> ClosedForm | MonteCarlo:
    if isinstance(options, MonteCarloConfig):
        return MonteCarlo(options, latent_dim, key=key)
    return ClosedForm(options, latent_dim, key=key)


def frozen_unless(trained: bool, psi: RandomFeatures) -> RandomFeatures:
    """Features as drawn, or open to the critic's gradient."""
    return psi if trained else jax.lax.stop_gradient(psi)


class LinearCritic(eqx.Module):
    """Heads that are linear in φ: both in all of it, or where z has twins each in the part that is of its z.

    `weights` holds w/√M: its gradient does not shrink as M grows, so Adam moves Q as fast as a layer would.
    """

    embeddings: tuple[
        ClosedForm | MonteCarlo | Deep | Network | Enumerated, ...
    ]  # one for both heads, or one each
    weights: Float[Array, "feature head"]

    def __init__(self, config: MuLVConfig, *, key: PRNGKeyArray):
        embedding_key, weight_key = jax.random.split(key)
        options, latent, width = config.critic, config.latent, config.trunk.width
        separate = latent.twins or isinstance(options, DeepConfig | NetworkConfig)
        keys = jax.random.split(embedding_key, HEADS if separate else 1)
        if isinstance(latent, CategoricalLatent):
            self.embeddings, features = tuple(Enumerated() for _ in keys), latent.dim
        elif isinstance(options, DeepConfig):
            self.embeddings = tuple(Deep(options, latent.dim, width, key=k) for k in keys)
            features = width
        elif isinstance(options, NetworkConfig):
            self.embeddings = tuple(Network(options, latent.dim, config.trunk, key=k) for k in keys)
            features = width
        else:
            self.embeddings = tuple(_embedding(options, latent.dim, k) for k in keys)
            features = options.features
        self.weights = jax.random.normal(weight_key, (features, HEADS)) / features**0.5

    def phi(self, p: tuple[Latent, ...]) -> Float[Array, "feature"]:
        """φ(x, a), from p(z | x, a) of each z."""
        return jnp.concatenate([embed(p[i % len(p)]) for i, embed in enumerate(self.embeddings)])

    @property
    def w(self) -> Float[Array, "feature head"]:
        """w of each head."""
        gain = 1.0 if isinstance(self.embeddings[0], Deep | Network) else self.weights.shape[0] ** 0.5
        return gain * self.weights

    def values(self, phi: Float[Array, "feature"]) -> Float[Array, "head"]:
        """⟨φ, w⟩ of each head."""
        if len(self.embeddings) == 1:
            return phi @ self.w
        return jnp.stack([part @ self.w[:, i] for i, part in enumerate(jnp.split(phi, HEADS))])

    def with_w(self, w: Float[Array, "feature head"]) -> "LinearCritic":
        """The same features under other weights."""
        return eqx.tree_at(lambda c: c.weights, self, w * self.weights.shape[0] ** -0.5)


class Model(NamedTuple):
    """What a value is computed with."""

    representation: Representation
    critic: LinearCritic

    def q_at(self, x: Window, added: Added | None = None) -> QFunction:
        """a ↦ Q(x, a) = ⟨φ(x, a), w⟩ at a batch of windows, which are encoded once; plus what is `added`."""
        representation, critic = self
        u = jax.vmap(representation.encode)(x)

        def q(a: Float[Array, "batch act"]) -> Float[Array, "batch head"]:
            phi = jax.vmap(lambda u, a: critic.phi(representation.p(u, a)))(u, a)
            values = jax.vmap(critic.values)(phi)
            return values if added is None else values + added(phi)[:, None]

        return q


def least_squares(
    phi: Float[Array, "batch feature"], targets: Float[Array, "batch"], ridge: float
) -> Float[Array, "feature"]:
    """argmin_w mean (⟨φ, w⟩ − target)² + λ‖w‖² (eq. lspe), with λ relative to the mean of ‖φ‖²."""
    batch, features = phi.shape
    gram = phi.T @ phi / batch
    penalty = ridge * jnp.trace(gram) * jnp.eye(features)
    return jax.scipy.linalg.solve(gram + penalty, phi.T @ targets / batch, assume_a="pos")


def solve_heads(
    critic: LinearCritic, phi: Float[Array, "batch feature"], targets: Float[Array, "batch"], ridge: float
) -> LinearCritic:
    """Each head's least squares on a part of the batch of its own, so that the heads differ."""
    batch, sources = phi.shape[0] // HEADS, jnp.split(phi, len(critic.embeddings), axis=1)
    w = [
        least_squares(sources[i % len(sources)][rows], targets[rows], ridge)
        for i in range(HEADS)
        for rows in [slice(i * batch, (i + 1) * batch)]
    ]
    return critic.with_w(jax.lax.stop_gradient(jnp.stack(w, axis=1)))
