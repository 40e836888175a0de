"""A recurrent cell, and unrolling over a sequence that may cross the ends of episodes."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from mulv.core.errors import MulvError
from mulv.core.types import PyTree
from mulv.nets.trunk import LayerNorm, Linear

UPDATE_BIAS = -1.0  # so that at initialisation only a share sigmoid(−1) of the state changes per step


class NormGRUCell(eqx.Module):
    """Dreamer-v2's GRU: one layer of [x, h] to reset, candidate and update, all three under one LayerNorm.

    Unlike the usual GRU, the reset gate multiplies the candidate as a whole and not h within it.
    """

    linear: Linear
    norm: LayerNorm

    def __init__(self, in_dim: int, state_dim: int, *, key: PRNGKeyArray):
        self.linear = Linear(in_dim + state_dim, 3 * state_dim, key=key)
        self.norm = LayerNorm(3 * state_dim)

    def __call__(self, x: Float[Array, "in"], h: Float[Array, "state"]) -> Float[Array, "state"]:
        """The state after input x, given the state h before it."""
        parts = self.norm(self.linear(jnp.concatenate([x, h])))
        reset, candidate, update = jnp.split(parts, 3)
        new = jnp.tanh(jax.nn.sigmoid(reset) * candidate)
        share = jax.nn.sigmoid(update + UPDATE_BIAS)
        return share * new + (1 - share) * h


def unroll(
    step: Callable[[PyTree, PyTree], tuple[PyTree, PyTree]],
    initial: PyTree,
    inputs: PyTree,
    first: Bool[Array, "time"],
    *,
    burn_in: int = 0,
) -> tuple[PyTree, PyTree]:
    """The carry after the last position, and the outputs of all positions, with time as first axis.

    `step(carry, input)` returns the next carry and an output, as in `jax.lax.scan`; the leaves of `inputs`
    have time as first axis. The carry starts as `initial` and is reset to it before every position where
    `first` is true, so that neither state nor gradients cross from one episode to the next.

    The first `burn_in` positions only update the carry: no gradient flows back into them. Their outputs are
    returned too, without gradients.
    """
    length = first.shape[0]
    if not 0 <= burn_in < length:
        raise MulvError(f"a burn-in of {burn_in} in a sequence of {length} leaves no step to learn from")

    def reset_then_step(carry: PyTree, at: tuple[Bool[Array, ""], PyTree]) -> tuple[PyTree, PyTree]:
        begins, seen = at
        carry = jax.tree.map(lambda fresh, kept: jnp.where(begins, fresh, kept), initial, carry)
        return step(carry, seen)

    def scan(carry: PyTree, positions: slice) -> tuple[PyTree, PyTree]:
        part = jax.tree.map(lambda leaf: leaf[positions], (first, inputs))
        return jax.lax.scan(reset_then_step, carry, part)

    if burn_in == 0:
        return scan(initial, slice(None))
    # Two scans instead of stopping gradients within one, so that the first has no backward pass.
    carry, before = jax.lax.stop_gradient(scan(initial, slice(burn_in)))
    carry, after = scan(carry, slice(burn_in, None))
    return carry, jax.tree.map(lambda b, a: jnp.concatenate([b, a]), before, after)
