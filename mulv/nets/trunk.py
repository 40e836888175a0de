"""The trunk of all networks: an MLP, or residual blocks with LayerNorm (SimBa)."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from mulv.core.types import Window


class Linear(eqx.Module):
    """x W + b with W of shape (in, out): under vmap one matrix product without a transpose."""

    weight: Float[Array, "in out"]
    bias: Float[Array, "out"]

    def __init__(self, in_dim: int, out_dim: int, *, key: PRNGKeyArray, scale: float = 1.0):
        # Not orthogonal initialisation: QR in a compiled function sometimes hangs in LAPACK's threads.
        self.weight = jax.nn.initializers.variance_scaling(scale**2, "fan_in", "truncated_normal")(
            key, (in_dim, out_dim)
        )
        self.bias = jnp.zeros(out_dim)

    def __call__(self, x: Float[Array, "in"]) -> Float[Array, "out"]:
        return x @ self.weight + self.bias


class LayerNorm(eqx.Module):
    """Normalises a vector to zero mean and unit variance, then scales and shifts it."""

    scale: Float[Array, "dim"]
    shift: Float[Array, "dim"]

    def __init__(self, dim: int):
        self.scale = jnp.ones(dim)
        self.shift = jnp.zeros(dim)

    def __call__(self, x: Float[Array, "dim"]) -> Float[Array, "dim"]:
        return standardise(x) * self.scale + self.shift


def standardise(x: Float[Array, "dim"]) -> Float[Array, "dim"]:
    """The vector, normalised to zero mean and unit variance over its entries."""
    centred = x - jnp.mean(x)
    return centred * jax.lax.rsqrt(jnp.mean(centred**2) + 1e-5)


class ResidualBlock(eqx.Module):
    """x + W₂ relu(W₁ LN(x))."""

    norm: LayerNorm
    expand: Linear
    project: Linear

    def __init__(self, width: int, *, key: PRNGKeyArray):
        expand_key, project_key = jax.random.split(key)
        self.norm = LayerNorm(width)
        self.expand = Linear(width, width, key=expand_key, scale=2.0**0.5)
        self.project = Linear(width, width, key=project_key)

    def __call__(self, x: Float[Array, "width"]) -> Float[Array, "width"]:
        return x + self.project(jax.nn.relu(self.expand(self.norm(x))))


@dataclass(frozen=True)
class TrunkConfig:
    """Size and kind of the shared body."""

    kind: Literal["mlp", "layernorm", "residual"] = "layernorm"
    """Plain layers, LayerNorm before activations, or residual blocks."""
    width: int = 256
    depth: int = 2
    """Hidden layers, or residual blocks."""
    activation: Literal["relu", "elu"] = "relu"
    """Between layers; residual blocks have ReLU."""


class Trunk(eqx.Module):
    """From an input vector to features: `width` of them, or the input itself at depth 0."""

    layers: list[Callable]

    def __init__(self, in_dim: int, config: TrunkConfig, *, key: PRNGKeyArray):
        self.layers = []
        if config.depth == 0:  # the input itself
            return
        keys = jax.random.split(key, config.depth + 1)
        width, gain = config.width, 2.0**0.5
        if config.kind == "residual":
            blocks = [ResidualBlock(width, key=k) for k in keys[1:]]
            self.layers = [Linear(in_dim, width, key=keys[0]), *blocks, LayerNorm(width)]
            return
        for i, k in enumerate(keys[:-1]):
            self.layers.append(Linear(in_dim if i == 0 else width, width, key=k, scale=gain))
            if config.kind == "layernorm":
                self.layers.append(LayerNorm(width))
            self.layers.append(Activation(config.activation))

    @staticmethod
    def out_dim(in_dim: int, config: TrunkConfig) -> int:
        """The number of features of a trunk."""
        return config.width if config.depth else in_dim

    def __call__(self, x: Float[Array, "in"]) -> Float[Array, "width"]:
        for layer in self.layers:
            x = layer(x)
        return x


class Join(eqx.Module):
    """A hidden layer of two inputs, each with its own scale: a few actions count as much as a code."""

    first: Linear
    second: Linear
    norm: LayerNorm | None
    activation: "Activation"

    def __init__(self, first_dim: int, second_dim: int, config: TrunkConfig, *, key: PRNGKeyArray):
        first_key, second_key = jax.random.split(key)
        self.first = Linear(first_dim, config.width, key=first_key)
        self.second = Linear(second_dim, config.width, key=second_key)
        self.norm = None if config.kind == "mlp" else LayerNorm(config.width)
        self.activation = Activation(config.activation)

    def __call__(self, x: Float[Array, "first"], y: Float[Array, "second"]) -> Float[Array, "width"]:
        joined = self.first(x) + self.second(y)
        return self.activation(joined if self.norm is None else self.norm(joined))


class Activation(eqx.Module):
    """A nonlinearity as a layer."""

    name: Literal["relu", "elu"] = eqx.field(static=True)

    def __call__(self, x: Float[Array, "dim"]) -> Float[Array, "dim"]:
        return jax.nn.relu(x) if self.name == "relu" else elu(x)


def elu(x: Float[Array, "dim"]) -> Float[Array, "dim"]:
    """x above zero, exp(x) − 1 below: to 6e-8 what jax.nn.elu gives, whose expm1 takes longer on a CPU."""
    return jnp.where(x > 0, x, jnp.exp(jnp.minimum(x, 0)) - 1)


def flatten_window(x: Window) -> Float[Array, "in"]:
    """A window as one vector: observations, the actions between them, and the mask."""
    return jnp.concatenate([x.obs.ravel(), x.actions.ravel(), x.mask.astype(jnp.float32)])


def flat_window_dim(obs_dim: int, act_dim: int, window: int) -> int:
    """Length of `flatten_window`'s vector."""
    return window * obs_dim + (window - 1) * act_dim + window
