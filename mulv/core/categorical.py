"""Categorical distributions over finite latents, differentiable through their samples."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float


class Categorical(eqx.Module):
    """z is one of K values, as a one-hot vector."""

    logits: Float[Array, "latent"]

    @property
    def mean(self) -> Float[Array, "latent"]:
        """The vector of probabilities, which is E[z]."""
        return jax.nn.softmax(self.logits)

    def sample(self, noise: Float[Array, "latent"]) -> Float[Array, "latent"]:
        """The value that standard Gumbel `noise` picks; gradients pass straight through to the mean."""
        one_hot = jax.nn.one_hot(jnp.argmax(self.logits + noise), self.logits.shape[-1])
        return one_hot + self.mean - jax.lax.stop_gradient(self.mean)

    def kl(self, other: "Categorical") -> Float[Array, "latent"]:
        """KL(self ‖ other), one term per value."""
        mine, theirs = jax.nn.log_softmax(self.logits), jax.nn.log_softmax(other.logits)
        return jnp.exp(mine) * (mine - theirs)


class GroupedCategorical(eqx.Module):
    """z is a one-hot vector in each of several groups, independent of one another (Dreamer-v2's latent)."""

    logits: Float[Array, "group class"]

    @property
    def mean(self) -> Float[Array, "group class"]:
        """The probabilities of every group, which are E[z]."""
        return jax.nn.softmax(self.logits)

    def unimix(self, share: float) -> "GroupedCategorical":
        """(1 − share) of this distribution and `share` of the uniform one: no class is ever impossible."""
        if share == 0:
            return self
        uniform = jnp.full_like(self.logits, jnp.log(share / self.logits.shape[-1]))
        return GroupedCategorical(jnp.logaddexp(jax.nn.log_softmax(self.logits) + jnp.log1p(-share), uniform))

    def sample(self, noise: Float[Array, "group class"]) -> Float[Array, "group class"]:
        """The classes that standard Gumbel `noise` picks; gradients pass straight through to the mean."""
        # The difference is taken first, because it is exactly 0: so the sample is exactly one-hot.
        return _one_hot(self.logits + noise) + (self.mean - jax.lax.stop_gradient(self.mean))

    def mode(self) -> Float[Array, "group class"]:
        """The likeliest class of every group, one-hot; no gradient passes."""
        return _one_hot(self.logits)

    def kl(self, other: "GroupedCategorical") -> Float[Array, "group"]:
        """KL(self ‖ other), one term per group."""
        mine, theirs = jax.nn.log_softmax(self.logits), jax.nn.log_softmax(other.logits)
        return jnp.sum(jnp.exp(mine) * (mine - theirs), axis=-1)

    def entropy(self) -> Float[Array, "group"]:
        """The entropy of every group, at most the logarithm of its number of classes."""
        return -jnp.sum(self.mean * jax.nn.log_softmax(self.logits), axis=-1)


def _one_hot(scores: Float[Array, "group class"]) -> Float[Array, "group class"]:
    return jax.nn.one_hot(jnp.argmax(scores, axis=-1), scores.shape[-1])
