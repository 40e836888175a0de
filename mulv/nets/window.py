"""Windows as vectors: read by a recurrent network, beside their newest steps as they are."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from mulv.core.types import Window
from mulv.nets.recurrent import NormGRUCell
from mulv.nets.trunk import flat_window_dim, flatten_window


class WindowGRU(eqx.Module):
    """[the newest steps, a GRU's state after the whole window]; padding leaves the state as it is."""

    cell: NormGRUCell
    units: int = eqx.field(static=True)
    direct: int = eqx.field(static=True)

    def __init__(self, obs_dim: int, act_dim: int, units: int, direct: int, *, key: PRNGKeyArray):
        self.cell = NormGRUCell(obs_dim + act_dim, units, key=key)
        self.units, self.direct = units, direct

    @staticmethod
    def out_dim(obs_dim: int, act_dim: int, units: int, direct: int) -> int:
        """Length of the vector."""
        return flat_window_dim(obs_dim, act_dim, direct) + units

    def __call__(self, x: Window) -> Float[Array, "out"]:
        before = jnp.zeros_like(x.actions, shape=(1, x.actions.shape[1]))
        inputs = jnp.concatenate([x.obs, jnp.concatenate([before, x.actions])], axis=1)

        def step(h: Array, at: tuple[Float[Array, "in"], Bool[Array, ""]]) -> tuple[Array, None]:
            input_, real = at
            return jnp.where(real, self.cell(input_, h), h), None

        state, _ = jax.lax.scan(step, jnp.zeros(self.units), (inputs, x.mask))
        oldest = x.mask.shape[0] - self.direct
        newest = Window(x.obs[oldest:], x.actions[oldest:], x.mask[oldest:], x.rewards[oldest:])
        return jnp.concatenate([flatten_window(newest), state])
