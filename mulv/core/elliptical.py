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
LIMIT = 2.0  # of the bonus (Lemma Almost Optimism): rewards and values differ by no more


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
        # Cholesky-QR: a first pass that a shift keeps safe, and a second that takes the shift's error away.
        w, before = self.whitener, jnp.eye(rows.shape[1])
        for shift in (_SHIFT, 0.0):
            image = new @ w
            b = image.T @ image + old * (before.T @ before) + fresh * (w.T @ w)
            b = b + (shift * b.shape[0] * jnp.max(jnp.diagonal(b)) + _JITTER) * jnp.eye(b.shape[0])
            inverse = _inverse_root(b)
            w, before = w @ inverse, before @ inverse
        return eqx.tree_at(lambda e: (e.whitener, e.count), self, (w, count))


_SHIFT = float(jnp.finfo(jnp.float32).eps)
_JITTER = 1e-12  # keeps an empty direction from dividing by zero


def _inverse_root(b: Float[Array, "feature feature"]) -> Float[Array, "feature feature"]:
    """K⁻¹ of b = KᵀK, upper triangular."""
    lower = jnp.linalg.cholesky(b)
    return jax.scipy.linalg.solve_triangular(lower, jnp.eye(b.shape[0]), lower=True).T


def bonus(
    norm: Float[Array, "*batch"], scale: float | Float[Array, ""], form: Form
) -> Float[Array, "*batch"]:
    """b̂ = min(α‖φ‖_{Σ⁻¹}, 2), or with the square of the norm as in the main text."""
    return jnp.minimum(scale * (norm if form == "norm" else jnp.square(norm)), LIMIT)
