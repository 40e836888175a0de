"""How far φ lies outside the data: its norm in the ellipsoid of Σ = Σ_i φ_i φ_iᵀ + λI.

What is kept is W with Σ⁻¹ = W Wᵀ, so that ‖φ‖_{Σ⁻¹} = ‖φW‖ is one product. New rows are taken in under W,
where Σ is near the identity: forming Σ itself in float32 would lose directions below 1e-7 of its largest, and
the bonus is about those.
"""

from typing import Literal, Self

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

Form = Literal["norm", "squared"]
LIMIT = 2.0  # of the bonus (Lemma Almost Optimism), where rewards lie in [0, 1]


class Ellipsoid(eqx.Module):
    """Σ over `count` rows of data."""

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
        """Σ with these rows too."""
        return self.rebuilt(rows, self.count + rows.shape[0], 1.0)

    def rebuilt(
        self, rows: Float[Array, "batch feature"], count: Float[Array, ""], kept: float | Float[Array, ""]
    ) -> Self:
        """Σ over `count` rows, of which these are a sample; a share `kept` is still what it was before.

        φ moves while it is learned, so that the old part of Σ ages. Where data has come in faster than the
        new rows would be weighted by 1 − `kept`, all that is old stays. λ remains λ.
        """
        count = jnp.asarray(count, jnp.float32)
        # What Σ is multiplied by, so that its rows are the share `kept` of `count`.
        old = jnp.minimum(kept * count / jnp.maximum(self.count, 1e-6), 1.0)
        weight = jnp.maximum(count - old * self.count, 0.0) / rows.shape[0]
        new = jnp.sqrt(weight) * rows
        fresh = (1 - old) * self.regularisation

        def under(w: Array, was: Array) -> Array:
            """Wᵀ Σ W, where `was` is that of the Σ before."""
            image = new @ w
            return image.T @ image + old * was + fresh * (w.T @ w)

        # Cholesky-QR: a first pass that a shift keeps safe, and a second that takes the shift's error away.
        identity = jnp.eye(rows.shape[1])
        b = under(self.whitener, identity)
        shift = _EPSILON * rows.shape[1] * jnp.max(jnp.diagonal(b))
        step = _inverse_root(b + shift * identity)
        w = self.whitener @ step
        w = w @ _inverse_root(under(w, step.T @ step))
        return eqx.tree_at(lambda e: (e.whitener, e.count), self, (w, count))

    def measure(self, directions: int) -> Float[Array, "feature direction"]:
        """A with ‖φA‖ ≈ ‖φ‖_{Σ⁻¹}, to about one part in √(2 `directions`) (Johnson and Lindenstrauss).

        Fewer directions than features make a cheaper product; as many are W itself, and exact.
        """
        features = self.whitener.shape[0]
        if directions >= features:
            return self.whitener
        along = jax.random.normal(jax.random.key(0), (features, directions)) / directions**0.5
        return self.whitener @ along


_EPSILON = float(jnp.finfo(jnp.float32).eps)
_LEAST = 1e-12


def _inverse_root(b: Float[Array, "feature feature"]) -> Float[Array, "feature feature"]:
    """K⁻¹ of b = KᵀK, upper triangular."""
    lower = jnp.linalg.cholesky(b)
    return jax.scipy.linalg.solve_triangular(lower, jnp.eye(b.shape[0]), lower=True).T


def bonus(
    whitened: Float[Array, "*batch direction"],
    scale: float | Float[Array, ""],
    form: Form,
    limit: float = LIMIT,
) -> Float[Array, "*batch"]:
    """b̂ = min(α‖φ‖_{Σ⁻¹}, `limit`) of `whitened` φW, or with the square of the norm as in the main text."""
    squared = jnp.sum(jnp.square(whitened), axis=-1)
    # Not below a least norm, under which the root has no slope that an actor could follow.
    size = jnp.sqrt(jnp.maximum(squared, _LEAST**2)) if form == "norm" else squared
    return jnp.minimum(scale * size, limit)
