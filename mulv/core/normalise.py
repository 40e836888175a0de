"""Running statistics for normalisation; they are part of an agent's state."""

from typing import NamedTuple, Self

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
        """The moments updated by this batch."""
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
        """(x − mean) / std, clipped, so that one outlier cannot dominate a network."""
        mean, std = (jnp.broadcast_to(m, x.shape) for m in (self.mean, jnp.sqrt(self.variance + 1e-6)))
        return jnp.clip((x - mean) / std, -limit, limit)

    def scale(self, x: Float[Array, "*any"], limit: float = 10.0) -> Float[Array, "*any"]:
        """x divided by its root mean square, clipped too; zero stays zero."""
        root = jnp.broadcast_to(jnp.sqrt(self.second_moment + 1e-8), x.shape)
        return jnp.clip(x / root, -limit, limit)

    def unwhiten(self, x: Float[Array, "*any"]) -> Float[Array, "*any"]:
        """The inverse of `whiten`, up to clipping."""
        mean, std = (jnp.broadcast_to(m, x.shape) for m in (self.mean, jnp.sqrt(self.variance + 1e-6)))
        return x * std + mean

    def unscale(self, x: Float[Array, "*any"]) -> Float[Array, "*any"]:
        """The inverse of `scale`, up to clipping."""
        return x * jnp.broadcast_to(jnp.sqrt(self.second_moment + 1e-8), x.shape)


class ObsMoments(NamedTuple):
    """Running statistics of observations, and of their change from one to the next."""

    level: RunningMoments
    change: RunningMoments

    def update(self, o_h: Float[Array, "batch obs"], o_h1: Float[Array, "batch obs"]) -> "ObsMoments":
        """The moments updated by these transitions."""
        return ObsMoments(self.level.update(o_h), self.change.update(o_h1 - o_h))

    def whiten(self, x: Window) -> Window:
        """A window with every observation whitened; padding stays zero."""
        return x._replace(obs=jnp.where(x.mask[..., None], self.level.whiten(x.obs), 0.0))

    def levels_and_changes(self, x: Window) -> Window:
        """Every observation whitened, and beside it the change that led to it, each at its own scale.

        A recurrent reader wants both at every step: the pose, and how it moves.
        """
        levels = jnp.where(x.mask[..., None], self.level.whiten(x.obs), 0.0)
        changes = self.change.scale(x.obs[..., 1:, :] - x.obs[..., :-1, :])
        changes = jnp.where(x.mask[..., :-1, None], changes, 0.0)
        first = jnp.zeros_like(changes[..., :1, :])
        return x._replace(obs=jnp.concatenate([levels, jnp.concatenate([first, changes], axis=-2)], axis=-1))

    def whiten_changes(self, x: Window) -> Window:
        """The newest observation whitened, and in place of each older one the change from it to the next.

        The information is the same. But a change that is small compared to the observations' spread, as of a
        joint in one short simulator step, is no longer a small difference of two large inputs.
        """
        changes = self.change.scale(x.obs[..., 1:, :] - x.obs[..., :-1, :])
        changes = jnp.where(x.mask[..., :-1, None], changes, 0.0)
        return x._replace(obs=jnp.concatenate([changes, self.level.whiten(x.obs[..., -1:, :])], axis=-2))
