"""The window x_h as an agent's memory: the last L observations and the actions between them."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from mulv.core.spec import EnvSpec
from mulv.core.types import Window


def empty_window(spec: EnvSpec, length: int) -> Window:
    """The window before the first observation: all zero and masked out."""
    return Window(
        jnp.zeros((length, *spec.obs_shape), spec.obs_dtype),
        jnp.zeros((length - 1, spec.act_dim)),
        jnp.zeros(length, bool),
        jnp.zeros(length),
    )


def push(
    x: Window, a_prev: Float[Array, "act"], r_prev: Float[Array, ""], o_h: Float[Array, "obs"]
) -> Window:
    """The window after action a_{h-1}, reward r_{h-1} and observation o_h; the oldest of each are dropped."""
    return Window(
        jnp.concatenate([x.obs[1:], o_h[None]]),
        jnp.concatenate([x.actions, a_prev[None]])[1:],
        jnp.concatenate([x.mask[1:], jnp.ones(1, bool)]),
        jnp.concatenate([x.rewards[1:], r_prev[None]]),
    )
