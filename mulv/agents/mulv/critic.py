"""The critic Q(x, a) = ⟨φ(x, a), w⟩, and least squares policy evaluation."""

from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from mulv.agents.mulv.config import MuLVConfig
from mulv.agents.mulv.embeddings import Deep, Distribution, Embedding, Network, draw_embedding
from mulv.agents.mulv.groups import DeepConfig, DistributionConfig, NetworkConfig
from mulv.agents.mulv.policy import QFunction
from mulv.agents.mulv.representation import Latent, Representation
from mulv.core.types import Window

Added = Callable[[Float[Array, "batch feature"]], Float[Array, "batch"]]  # φ to what is added to ⟨φ, w⟩
HEADS = 2


class LinearCritic(eqx.Module):
    """Two heads that are linear in φ: in all of it, or each in its own part if it has its own embedding.

    `weights` holds w/√M: its gradient does not shrink as M grows, so Adam changes Q as fast as for a layer.
    """

    embeddings: tuple[Embedding, ...]  # one for both heads, or one each
    weights: Float[Array, "feature head"]

    def __init__(self, config: MuLVConfig, *, key: PRNGKeyArray):
        embedding_key, weight_key = jax.random.split(key)
        separate = config.latent.twins or isinstance(
            config.critic, DeepConfig | NetworkConfig | DistributionConfig
        )
        keys = jax.random.split(embedding_key, HEADS if separate else 1)
        drawn = [draw_embedding(config, k) for k in keys]
        self.embeddings, features = tuple(embedding for embedding, _ in drawn), drawn[0][1]
        if isinstance(first := self.embeddings[0], Distribution):
            self.weights = jnp.stack([first.bins.centres] * HEADS, axis=1)  # not trained
        else:
            self.weights = jax.random.normal(weight_key, (features, HEADS)) / features**0.5

    def phi(self, p: tuple[Latent, ...]) -> Float[Array, "feature"]:
        """φ(x, a), from p(z | x, a) of each z."""
        return jnp.concatenate([embed(p[i % len(p)]) for i, embed in enumerate(self.embeddings)])

    @property
    def w(self) -> Float[Array, "feature head"]:
        """The weights w of each head."""
        first = self.embeddings[0]
        if isinstance(first, Distribution):
            return jax.lax.stop_gradient(self.weights)
        return (
            self.weights if isinstance(first, Deep | Network) else self.weights.shape[0] ** 0.5 * self.weights
        )

    def values(self, phi: Float[Array, "feature"]) -> Float[Array, "head"]:
        """⟨φ, w⟩ of each head."""
        if len(self.embeddings) == 1:
            return phi @ self.w
        return jnp.stack([part @ self.w[:, i] for i, part in enumerate(jnp.split(phi, HEADS))])

    def loss(
        self,
        phi: Float[Array, "batch feature"],
        values: Float[Array, "batch head"],
        targets: Float[Array, "batch"],
    ) -> Float[Array, ""]:
        """Squared error (cross-entropy for return distributions), mean over the batch, sum over heads."""
        if not isinstance(first := self.embeddings[0], Distribution):
            return jnp.sum(jnp.mean(jnp.square(values - targets[:, None]), axis=0))
        of_heads = [jnp.mean(jax.vmap(first.loss)(part, targets)) for part in jnp.split(phi, HEADS, axis=1)]
        return jnp.sum(jnp.stack(of_heads))

    def with_w(self, w: Float[Array, "feature head"]) -> "LinearCritic":
        """The critic with the same features and weights w."""
        return eqx.tree_at(lambda c: c.weights, self, w * self.weights.shape[0] ** -0.5)


class Model(NamedTuple):
    """A representation and a critic on it, which together give Q."""

    representation: Representation
    critic: LinearCritic

    def q_at(self, x: Window, added: Added | None = None) -> QFunction:
        """a ↦ Q(x, a) = ⟨φ(x, a), w⟩ (+ `added`(φ)) at a batch of windows, which are encoded only once."""
        representation, critic = self
        code = jax.vmap(representation.encode)(x)

        def q(a: Float[Array, "batch act"]) -> Float[Array, "batch head"]:
            phi = jax.vmap(lambda code, a: critic.phi(representation.p(code, a)))(code, a)
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
    """The critic with each head solved by least squares on a different part of the batch."""
    batch, sources = phi.shape[0] // HEADS, jnp.split(phi, len(critic.embeddings), axis=1)
    w = [
        least_squares(sources[i % len(sources)][rows], targets[rows], ridge)
        for i in range(HEADS)
        for rows in [slice(i * batch, (i + 1) * batch)]
    ]
    return critic.with_w(jax.lax.stop_gradient(jnp.stack(w, axis=1)))
