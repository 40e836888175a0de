"""The window x_h as a memory: what an agent that sees the last L steps carries from one step to the next."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from mulv.core.spec import EnvSpec
from mulv.core.types import Window


def empty_window(spec: EnvSpec, length: int) -> Window:
    """The window before anything was seen: nothing in it is real."""
    return Window(
        jnp.zeros((length, *spec.obs_shape), spec.obs_dtype),
        jnp.zeros((length - 1, spec.act_dim)),
        jnp.zeros(length, bool),
    )


def push(x: Window, a_prev: Float[Array, "act"], o_h: Float[Array, "obs"]) -> Window:
    """The window after a_{h-1} was taken and o_h seen; the oldest observation and action leave it."""
    return Window(
        jnp.concatenate([x.obs[1:], o_h[None]]),
        jnp.concatenate([x.actions, a_prev[None]])[1:],
        jnp.concatenate([x.mask[1:], jnp.ones(1, bool)]),
    )
