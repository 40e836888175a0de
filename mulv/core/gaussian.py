"""Gaussians over vectors: for latents, and squashed by tanh for policies."""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

HALF_LOG_2PI = 0.5 * math.log(2 * math.pi)
LOG_STD_RANGE = (-5.0, 1.0)  # for latents
EDGE = 1 - 2**-23  # largest action with a finite arctanh in float32


class DiagonalNormal(eqx.Module):
    """N(mean, diag(std)²); `std` has an entry for each dimension, or one for all."""

    mean: Float[Array, "latent"]
    std: Float[Array, "#latent"]

    def sample(self, noise: Float[Array, "latent"]) -> Float[Array, "latent"]:
        """The point that standard normal `noise` maps to."""
        return self.mean + self.std * noise

    def kl(self, other: "DiagonalNormal") -> Float[Array, "latent"]:
        """KL(self ‖ other), one term per dimension."""
        ratio = self.std / other.std
        distance = (self.mean - other.mean) / other.std
        return 0.5 * (jnp.square(ratio) + jnp.square(distance) - 1) - jnp.log(ratio)


def squashed_std(raw: Float[Array, "*any"]) -> Float[Array, "*any"]:
    """A network's output as standard deviations, with logarithms within LOG_STD_RANGE."""
    low, high = LOG_STD_RANGE
    return jnp.exp(low + (high - low) * jax.nn.sigmoid(raw))


class TanhNormal(eqx.Module):
    """a = tanh(u), u ~ N(mean, diag(exp(log_std))²); actions lie in (−1, 1)."""

    mean: Float[Array, "act"]
    log_std: Float[Array, "act"]

    def sample_and_log_prob(self, noise: Float[Array, "act"]) -> tuple[Float[Array, "act"], Float[Array, ""]]:
        """The action that standard normal `noise` maps to, and its log density."""
        u = self.mean + jnp.exp(self.log_std) * noise
        return jnp.tanh(u), self._log_prob_at(u, noise)

    def log_prob(self, action: Float[Array, "act"]) -> Float[Array, ""]:
        """Log density of an action; one at the edge, where it is infinite, is first moved just inside."""
        u = jnp.arctanh(jnp.clip(action, -EDGE, EDGE))
        return self._log_prob_at(u, (u - self.mean) * jnp.exp(-self.log_std))

    def _log_prob_at(self, u: Float[Array, "act"], noise: Float[Array, "act"]) -> Float[Array, ""]:
        log_normal = -0.5 * noise**2 - self.log_std - HALF_LOG_2PI
        # log(1 − tanh²u) written so that it neither overflows nor cancels for large |u|.
        log_jacobian = 2 * (jnp.log(2.0) - u - jax.nn.softplus(-2 * u))
        return jnp.sum(log_normal - log_jacobian)

    def at(self, noise: Float[Array, "act"] | None) -> Float[Array, "act"]:
        """The action that standard normal `noise` maps to; without noise, the mode."""
        return self.mode() if noise is None else self.sample_and_log_prob(noise)[0]

    def mode(self) -> Float[Array, "act"]:
        """The action at the Gaussian's mean: what evaluation uses."""
        return jnp.tanh(self.mean)
