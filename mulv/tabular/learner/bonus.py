"""The ellipsoid bonus b̂ = min(α ‖φ‖_{Σ⁻¹}, 2) of Lemma Almost Optimism, for features of one step."""

import jax.numpy as jnp
from jax.scipy.linalg import solve_triangular
from jaxtyping import Array, Float

CLIP = 2.0


def elliptical_bonus(
    features: Float[Array, "pair feature"],
    visits: Float[Array, "pair"],
    alpha: Float[Array, ""] | float,
    regularisation: Float[Array, ""] | float,
) -> Float[Array, "pair"]:
    """b̂ of every pair (x, a), where Σ = Σ φ φᵀ + λI sums over as many pairs as were visited."""
    size = jnp.eye(features.shape[1], dtype=features.dtype)
    covariance = jnp.einsum("p,pi,pj->ij", visits, features, features) + regularisation * size
    whiten = solve_triangular(jnp.linalg.cholesky(covariance), size, lower=True)
    return jnp.minimum(alpha * jnp.linalg.norm(features @ whiten.T, axis=1), CLIP)
