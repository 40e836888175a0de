"""The Q network of actor-critics, and Q of a batch under an ensemble of them."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from mulv.nets.trunk import Linear, Trunk, TrunkConfig


class QNetwork(eqx.Module):
    """Q(x_h, a_h), for x_h as a vector."""

    trunk: Trunk
    head: Linear

    def __init__(self, in_dim: int, trunk: TrunkConfig, *, key: PRNGKeyArray):
        trunk_key, head_key = jax.random.split(key)
        self.trunk = Trunk(in_dim, trunk, key=trunk_key)
        self.head = Linear(trunk.width, 1, key=head_key)

    def __call__(self, x_h: Float[Array, "in"], a_h: Float[Array, "act"]) -> Float[Array, ""]:
        return self.head(self.trunk(jnp.concatenate([x_h, a_h])))[0]


def q_values(
    critics: QNetwork, x_h: Float[Array, "batch in"], a_h: Float[Array, "batch act"]
) -> Float[Array, "head batch"]:
    """Q of a batch under each critic of an ensemble, which is stacked along its leaves' first axis.

    The ensemble is the outer vmap, because otherwise XLA transposes every activation.
    """
    return eqx.filter_vmap(lambda critic: jax.vmap(critic)(x_h, a_h))(critics)
