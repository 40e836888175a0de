"""Running statistics that belong to an agent's state: saved, loaded and resumed with it."""

from typing import Self

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from mulv.core.types import Window


class RunningMoments(eqx.Module):
    """Mean and second central moment of a stream of vectors, merged batch by batch (Chan et al.)."""

    count: Float[Array, ""]
    mean: Float[Array, "*shape"]
    variance: Float[Array, "*shape"]

    def __init__(self, shape: tuple[int, ...]):
        self.count = jnp.zeros(())
        self.mean = jnp.zeros(shape)
        self.variance = jnp.ones(shape)

    def update(self, batch: Float[Array, "batch *shape"]) -> Self:
        """The moments after this batch too."""
        new = jnp.float32(batch.shape[0])
        total = self.count + new
        share = new / total
        delta = jnp.mean(batch, axis=0) - self.mean
        # With no data yet `share` is 1, so the initial values vanish from the merge.
        variance = (1 - share) * self.variance + share * jnp.var(batch, axis=0)
        variance = variance + share * (1 - share) * delta**2
        return eqx.tree_at(
            lambda m: (m.count, m.mean, m.variance), self, (total, self.mean + share * delta, variance)
        )

    @property
    def second_moment(self) -> Float[Array, "*shape"]:
        """E[x²]."""
        return self.variance + self.mean**2

    def whiten(self, x: Float[Array, "*any"], limit: float = 10.0) -> Float[Array, "*any"]:
        """(x − mean) / std, clipped so that one wild reading cannot swamp a network."""
        mean, std = (jnp.broadcast_to(m, x.shape) for m in (self.mean, jnp.sqrt(self.variance + 1e-6)))
        return jnp.clip((x - mean) / std, -limit, limit)

    def scale(self, x: Float[Array, "*any"], limit: float = 10.0) -> Float[Array, "*any"]:
        """x over its root mean square, so that zero stays zero; clipped alike."""
        root = jnp.broadcast_to(jnp.sqrt(self.second_moment + 1e-8), x.shape)
        return jnp.clip(x / root, -limit, limit)


def whiten_window(moments: RunningMoments, x: Window) -> Window:
    """Whiten a window's observations; padding stays zero."""
    return x._replace(obs=jnp.where(x.mask[..., None], moments.whiten(x.obs), 0.0))
