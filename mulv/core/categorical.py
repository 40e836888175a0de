"""A categorical distribution over a finite latent, differentiable through its samples."""

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
        """KL(self ‖ other), a term a value."""
        mine, theirs = jax.nn.log_softmax(self.logits), jax.nn.log_softmax(other.logits)
        return jnp.exp(mine) * (mine - theirs)
