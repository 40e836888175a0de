"""DrQ-v2's heads on a long encoding: a bottleneck, followed by an actor or two critics."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from mulv.nets.critic import QNetwork, q_values
from mulv.nets.trunk import LayerNorm, Linear, Trunk, TrunkConfig


class Bottleneck(eqx.Module):
    """tanh(LayerNorm(W e)): reduces a long encoding to a few numbers in (−1, 1)."""

    linear: Linear
    norm: LayerNorm

    def __init__(self, in_dim: int, out_dim: int, *, key: PRNGKeyArray):
        self.linear = Linear(in_dim, out_dim, key=key)
        self.norm = LayerNorm(out_dim)

    def __call__(self, e_h: Float[Array, "encoding"]) -> Float[Array, "feature"]:
        return jnp.tanh(self.norm(self.linear(e_h)))


class DoubleQ(eqx.Module):
    """Two critics that share a bottleneck."""

    bottleneck: Bottleneck
    heads: QNetwork

    def __init__(self, in_dim: int, feature_dim: int, act_dim: int, trunk: TrunkConfig, *, key: PRNGKeyArray):
        bottleneck_key, head_key = jax.random.split(key)
        self.bottleneck = Bottleneck(in_dim, feature_dim, key=bottleneck_key)
        self.heads = eqx.filter_vmap(lambda k: QNetwork(feature_dim + act_dim, trunk, key=k))(
            jax.random.split(head_key, 2)
        )

    def __call__(
        self, e_h: Float[Array, "batch encoding"], a_h: Float[Array, "batch act"]
    ) -> Float[Array, "head batch"]:
        return q_values(self.heads, jax.vmap(self.bottleneck)(e_h), a_h)


class DeterministicActor(eqx.Module):
    """μ(e_h) in (−1, 1)."""

    bottleneck: Bottleneck
    trunk: Trunk
    head: Linear

    def __init__(self, in_dim: int, feature_dim: int, act_dim: int, trunk: TrunkConfig, *, key: PRNGKeyArray):
        bottleneck_key, trunk_key, head_key = jax.random.split(key, 3)
        self.bottleneck = Bottleneck(in_dim, feature_dim, key=bottleneck_key)
        self.trunk = Trunk(feature_dim, trunk, key=trunk_key)
        self.head = Linear(trunk.width, act_dim, key=head_key, scale=0.01)

    def __call__(self, e_h: Float[Array, "encoding"]) -> Float[Array, "act"]:
        return jnp.tanh(self.head(self.trunk(self.bottleneck(e_h))))
