"""Normal noise by a hash of counters: jax.random.normal takes ten times as long on a CPU."""

import math

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray, UInt32


def counted_normal(key: PRNGKeyArray, shape: tuple[int, ...]) -> Float[Array, "*shape"]:
    """Standard normal noise, as a function of key and shape, for reparametrised samples."""
    first, second = jax.random.bits(key, (2,))
    bits = _mixed(_mixed(jnp.arange(math.prod(shape), dtype=jnp.uint32) + first) ^ second)
    uniform = (bits >> 8).astype(jnp.float32) * 2.0**-23 - (1 - 2.0**-24)  # the middles of 2^24 intervals
    return (2.0**0.5 * jax.lax.erf_inv(uniform)).reshape(shape)


def _mixed(bits: UInt32[Array, "n"]) -> UInt32[Array, "n"]:
    """A bijection under which each bit depends on all bits (Wellons' lowbias32)."""
    bits = (bits ^ (bits >> 16)) * np.uint32(0x7FEB352D)
    bits = (bits ^ (bits >> 15)) * np.uint32(0x846CA68B)
    return bits ^ (bits >> 16)
