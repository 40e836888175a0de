"""The ellipsoid bonus of Lemma Almost Optimism, for features of one step whose visits are counted."""

import jax.numpy as jnp
from jax.scipy.linalg import solve_triangular
from jaxtyping import Array, Float

from mulv.core.elliptical import bonus


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
    return bonus(features @ whiten.T, alpha, "norm")
