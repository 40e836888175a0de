"""The policy network of all actor-critics."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from mulv.core.gaussian import TanhNormal
from mulv.nets.trunk import Linear, Trunk, TrunkConfig


class Actor(eqx.Module):
    """π(a | ·): a tanh-Gaussian policy of a vector."""

    trunk: Trunk
    head: Linear

    def __init__(self, in_dim: int, act_dim: int, trunk: TrunkConfig, *, key: PRNGKeyArray):
        trunk_key, head_key = jax.random.split(key)
        self.trunk = Trunk(in_dim, trunk, key=trunk_key)
        self.head = Linear(trunk.width, 2 * act_dim, key=head_key, scale=0.01)

    def __call__(self, x: Float[Array, "in"]) -> TanhNormal:
        mean, log_std = jnp.split(self.head(self.trunk(x)), 2)
        return TanhNormal(mean, jnp.clip(log_std, -10.0, 2.0))


def act_on(
    actor: Callable[[Any], TanhNormal], x: Any, noise: Float[Array, "batch act"]
) -> tuple[Float[Array, "batch act"], Float[Array, "batch"]]:
    """Actions for a batch of the actor's inputs, and their log densities."""
    return jax.vmap(lambda x, n: actor(x).sample_and_log_prob(n))(x, noise)
