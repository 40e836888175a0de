"""Random features ψ_j(z) whose expectation under a Gaussian is known in closed form.

With m = ωᵀμ + b and s² = Σ_i ω_i² σ_i², and z ~ N(μ, diag σ²):

    family     kernel of ⟨ψ(z), ψ(z')⟩     E[ψ(z)], up to its scale
    fourier    Gaussian                     exp(−s²/2) cos(m)
    relu       arc-cosine of degree one     m Φ(m/s) + s N(m/s)
    erf        arcsine                      erf(m / √(1 + 2s²))

So φ = E_{z~p}[ψ(z)] is the kernel mean embedding of p, and nothing is sampled.
"""

from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from mulv.core.gaussian import DiagonalNormal

Family = Literal["fourier", "relu", "erf"]

# cos(r) on [−π, π] as a polynomial in r², to 1e-6.
_COSINE = np.polynomial.Chebyshev.interpolate(lambda t: np.cos(np.sqrt(t)), 8, domain=[0.0, np.pi**2])
_COEFFICIENTS = [float(c) for c in _COSINE.convert(kind=np.polynomial.Polynomial).coef]
_TWO_PI = 6.28125  # a number of few bits, so that its integer multiples are exact in float32
_TWO_PI_REST = 2 * np.pi - _TWO_PI


@jax.custom_jvp
def cosine(x: Float[Array, "*any"]) -> Float[Array, "*any"]:
    """cos(x) by range reduction and a polynomial: XLA's own is a scalar call on a CPU, and far slower."""
    turns = jnp.round(x * (1 / (2 * np.pi)))
    squared = jnp.square(x - turns * _TWO_PI - turns * _TWO_PI_REST)
    result = jnp.full_like(x, _COEFFICIENTS[-1])
    for coefficient in reversed(_COEFFICIENTS[:-1]):
        result = result * squared + coefficient
    return result


@cosine.defjvp
def _cosine_jvp(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    (x,), (dx,) = primals, tangents
    return cosine(x), cosine(x + np.pi / 2) * dx  # −sin(x) = cos(x + π/2)


@jax.custom_jvp
def rectified_mean(m: Float[Array, "*any"], s: Float[Array, "*any"]) -> Float[Array, "*any"]:
    """E[max(y, 0)] for y ~ N(m, s²). With erf: JAX's ndtr is also exact in the far tail, but slower."""
    return m * _cdf(m / s) + s * _density(m / s)


@rectified_mean.defjvp
def _rectified_mean_jvp(primals: tuple[Array, Array], tangents: tuple[Array, Array]) -> tuple[Array, Array]:
    (m, s), (dm, ds) = primals, tangents
    cdf, density = _cdf(m / s), _density(m / s)
    return m * cdf + s * density, cdf * dm + density * ds  # the terms of t = m/s cancel


def _cdf(t: Float[Array, "*any"]) -> Float[Array, "*any"]:
    return 0.5 + 0.5 * jax.lax.erf(t * 0.5**0.5)


def _density(t: Float[Array, "*any"]) -> Float[Array, "*any"]:
    return jnp.exp(-0.5 * jnp.square(t)) * (2 * np.pi) ** -0.5


class RandomFeatures(eqx.Module):
    """M random features of a latent z, and their exact expectation under a Gaussian over z."""

    omega: Float[Array, "latent feature"]
    bias: Float[Array, "feature"]
    family: Family = eqx.field(static=True)

    def __init__(
        self, latent_dim: int, features: int, family: Family, lengthscale: float = 1.0, *, key: PRNGKeyArray
    ):
        omega_key, bias_key = jax.random.split(key)
        self.family = family
        self.omega = jax.random.normal(omega_key, (latent_dim, features)) / lengthscale
        if family == "fourier":
            self.bias = jax.random.uniform(bias_key, (features,), maxval=2 * np.pi)
        else:  # equivalent to one more entry of z, a constant 1
            self.bias = jax.random.normal(bias_key, (features,))

    def at(self, z: Float[Array, "latent"]) -> Float[Array, "feature"]:
        """ψ(z)."""
        m = z @ self.omega + self.bias
        if self.family == "fourier":
            return self._scale * cosine(m)
        return self._scale * (jax.nn.relu(m) if self.family == "relu" else jax.lax.erf(m))

    def mean(self, p: DiagonalNormal) -> Float[Array, "feature"]:
        """φ = E_{z~p}[ψ(z)], exactly."""
        m = p.mean @ self.omega + self.bias
        s2 = self._projected_variance(jnp.square(p.std))
        if self.family == "fourier":
            return self._scale * jnp.exp(-0.5 * s2) * cosine(m)
        if self.family == "erf":
            return self._scale * jax.lax.erf(m * jax.lax.rsqrt(1 + 2 * s2))
        s = jnp.sqrt(s2 + 1e-12)  # the gradient of √ is infinite at 0, where z is certain
        return self._scale * rectified_mean(m, s)

    def _projected_variance(self, variance: Float[Array, "#latent"]) -> Float[Array, "feature"]:
        """s² = Σ_i ω_i² σ_i², without a matrix product if all σ_i are one number."""
        if variance.shape[-1] == 1:
            return variance * jnp.sum(jnp.square(self.omega), axis=0)
        return variance @ jnp.square(self.omega)

    @property
    def _scale(self) -> float:
        """The factor that makes ⟨ψ(z), ψ(z')⟩ converge to the family's kernel as M grows."""
        features = self.bias.shape[-1]
        return (1 / features if self.family == "erf" else 2 / features) ** 0.5
