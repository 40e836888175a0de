"""How far φ lies outside the data: its norm in the ellipsoid of Σ = Σ_i φ_i φ_iᵀ + λI.

Stored is W with Σ⁻¹ = W Wᵀ, so that ‖φ‖_{Σ⁻¹} = ‖φW‖ is one product. New rows are added in the basis of W,
where Σ is near the identity. Forming Σ itself in float32 would lose directions below 1e-7 of its largest
eigenvalue, and these matter most for the bonus.
"""

from typing import Literal, Self

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

Form = Literal["norm", "squared"]
LIMIT = 2.0  # of the bonus (Lemma Almost Optimism), where rewards lie in [0, 1]


class Ellipsoid(eqx.Module):
    """Σ of `count` rows of data."""

    whitener: Float[Array, "feature feature"]  # W, upper triangular
    count: Float[Array, ""]
    regularisation: float = eqx.field(static=True)  # λ

    def __init__(self, features: int, regularisation: float):
        self.whitener = jnp.eye(features) / regularisation**0.5
        self.count = jnp.zeros(())
        self.regularisation = regularisation

    def norm(self, phi: Float[Array, "*batch feature"]) -> Float[Array, "*batch"]:
        """‖φ‖_{Σ⁻¹}."""
        return jnp.linalg.norm(phi @ self.whitener, axis=-1)

    def extended(self, rows: Float[Array, "batch feature"]) -> Self:
        """Σ with these rows added."""
        return self.rebuilt(rows, self.count + rows.shape[0], 1.0)

    def rebuilt(
        self, rows: Float[Array, "batch feature"], count: Float[Array, ""], kept: float | Float[Array, ""]
    ) -> Self:
        """Σ of `count` rows: a share `kept` from the old Σ, the rest from `rows`, which are a sample.

        The old part of Σ becomes outdated, because φ changes while it is learned. If the data has grown by
        more than a share 1 − `kept`, all of the old Σ is kept. λ does not change.
        """
        count = jnp.asarray(count, jnp.float32)
        # The factor of the old Σ, so that its rows are the share `kept` of `count`.
        old = jnp.minimum(kept * count / jnp.maximum(self.count, 1e-6), 1.0)
        weight = jnp.maximum(count - old * self.count, 0.0) / rows.shape[0]
        new = jnp.sqrt(weight) * rows
        fresh = (1 - old) * self.regularisation

        def under(w: Array, was: Array) -> Array:
            """Wᵀ Σ W, where `was` is Wᵀ Σ W of the old Σ."""
            image = new @ w
            return image.T @ image + old * was + fresh * (w.T @ w)

        # Cholesky-QR: a first pass with a shift for stability, and a second that removes the shift's error.
        identity = jnp.eye(rows.shape[1])
        b = under(self.whitener, identity)
        shift = _EPSILON * rows.shape[1] * jnp.max(jnp.diagonal(b))
        step = _inverse_root(b + shift * identity)
        w = self.whitener @ step
        w = w @ _inverse_root(under(w, step.T @ step))
        return eqx.tree_at(lambda e: (e.whitener, e.count), self, (w, count))

    def measure(self, directions: int) -> Float[Array, "feature direction"]:
        """A with ‖φA‖ ≈ ‖φ‖_{Σ⁻¹}, to about one part in √(2 `directions`) (Johnson and Lindenstrauss).

        With fewer directions than features the product is cheaper; with as many it is W itself, and exact.
        """
        features = self.whitener.shape[0]
        if directions >= features:
            return self.whitener
        along = jax.random.normal(jax.random.key(0), (features, directions)) / directions**0.5
        return self.whitener @ along


_EPSILON = float(jnp.finfo(jnp.float32).eps)
_LEAST = 1e-12


def _inverse_root(b: Float[Array, "feature feature"]) -> Float[Array, "feature feature"]:
    """K⁻¹ for b = KᵀK, upper triangular."""
    lower = jnp.linalg.cholesky(b)
    return jax.scipy.linalg.solve_triangular(lower, jnp.eye(b.shape[0]), lower=True).T


def bonus(
    whitened: Float[Array, "*batch direction"],
    scale: float | Float[Array, ""],
    form: Form,
    limit: float = LIMIT,
) -> Float[Array, "*batch"]:
    """b̂ = min(α‖φ‖_{Σ⁻¹}, `limit`) for `whitened` φW, or with the squared norm, as in the main text."""
    squared = jnp.sum(jnp.square(whitened), axis=-1)
    # A lower bound for the norm, because the gradient of the root is undefined at 0.
    size = jnp.sqrt(jnp.maximum(squared, _LEAST**2)) if form == "norm" else squared
    return jnp.minimum(scale * size, limit)
