"""The two regressions: a network on windows, and a GRU on whole sequences."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from mulv.core.learner import Trained, descend, start_training
from mulv.core.types import PyTree
from mulv.nets.recurrent import NormGRUCell, unroll
from mulv.nets.trunk import Linear, Trunk, TrunkConfig

TRUNK = TrunkConfig(kind="layernorm", width=256, depth=2, activation="elu")
STATE = 128  # size of the GRU's state
LEARNING_RATE, WEIGHT_DECAY = 2e-3, 0.3
BATCH = 256  # rows per update of a network on windows
SEQUENCES = 4  # sequences per update of the GRU
TOGETHER = 50  # updates in one compiled call

Loss = Callable[[PyTree, PyTree], Float[Array, ""]]  # (model, batch) to the loss
Tick = Callable[[int], None]  # called with the number of updates done since the last call


class WindowNet(eqx.Module):
    """A network from the inputs of one window to the targets."""

    trunk: Trunk
    head: Linear

    def __init__(self, in_dim: int, out_dim: int, *, key: PRNGKeyArray):
        trunk_key, head_key = jax.random.split(key)
        self.trunk = Trunk(in_dim, TRUNK, key=trunk_key)
        self.head = Linear(TRUNK.width, out_dim, key=head_key)

    def __call__(self, x: Float[Array, "feature"]) -> Float[Array, "target"]:
        return self.head(self.trunk(x))


class RecurrentNet(eqx.Module):
    """A GRU over a sequence, then a `WindowNet` at every position.

    The `WindowNet` also gets the position's own inputs, so it knows at least what a window of 2 shows.
    """

    cell: NormGRUCell
    net: WindowNet

    def __init__(self, in_dim: int, out_dim: int, *, key: PRNGKeyArray):
        cell_key, net_key = jax.random.split(key)
        self.cell = NormGRUCell(in_dim, STATE, key=cell_key)
        self.net = WindowNet(in_dim + STATE, out_dim, key=net_key)

    def __call__(
        self, x: Float[Array, "time feature"], first: Bool[Array, "time"]
    ) -> Float[Array, "time target"]:
        def step(h: Array, x_h: Array) -> tuple[Array, Array]:
            h = self.cell(x_h, h)
            return h, h

        _, states = unroll(step, jnp.zeros(STATE), x, first)
        return jax.vmap(self.net)(jnp.concatenate([x, states], axis=-1))


def fit_windows(
    x: Float[np.ndarray, "batch feature"],
    y: Float[np.ndarray, "batch target"],
    x_test: Float[np.ndarray, "rest feature"],
    *,
    updates: int,
    key: PRNGKeyArray,
    tick: Tick,
) -> Float[np.ndarray, "rest target"]:
    """Predictions for `x_test` by a network fitted to x and y."""
    init_key, key = jax.random.split(key)
    net = WindowNet(x.shape[1], y.shape[1], key=init_key)
    net = _fit(net, _window_loss, (x, y), size=BATCH, updates=updates, key=key, tick=tick)
    return np.asarray(_predict(net, jnp.asarray(x_test)))


def fit_recurrent(
    x: Float[np.ndarray, "batch time feature"],
    first: Bool[np.ndarray, "batch time"],
    y: Float[np.ndarray, "batch time target"],
    x_test: Float[np.ndarray, "rest time feature"],
    first_test: Bool[np.ndarray, "rest time"],
    *,
    updates: int,
    key: PRNGKeyArray,
    tick: Tick,
) -> Float[np.ndarray, "rest time target"]:
    """Predictions at every position of `x_test` by a GRU fitted to x and y.

    An episode's first position has no loss, because windows are not tested there either.
    """
    init_key, key = jax.random.split(key)
    net = RecurrentNet(x.shape[-1], y.shape[-1], key=init_key)
    data = (x, first, y)
    net = _fit(net, _recurrent_loss, data, size=SEQUENCES, updates=updates, key=key, tick=tick)
    return np.asarray(_predict(net, jnp.asarray(x_test), jnp.asarray(first_test)))


def _window_loss(net: WindowNet, batch: tuple[Array, Array]) -> Float[Array, ""]:
    x, y = batch
    return jnp.mean(jnp.square(jax.vmap(net)(x) - y))


def _recurrent_loss(net: RecurrentNet, batch: tuple[Array, Array, Array]) -> Float[Array, ""]:
    x, first, y = batch
    error = jnp.mean(jnp.square(jax.vmap(net)(x, first) - y), axis=-1)
    return jnp.sum(jnp.where(first, 0, error)) / jnp.maximum(jnp.sum(~first), 1)


@eqx.filter_jit
def _predict(net: PyTree, *inputs: Array) -> Array:
    return jax.vmap(net)(*inputs)


def _fit(
    model: PyTree, loss: Loss, data: PyTree, *, size: int, updates: int, key: PRNGKeyArray, tick: Tick
) -> PyTree:
    """The model after `updates` updates by AdamW with cosine decay, on batches of `size` rows of `data`."""
    data = jax.tree.map(jnp.asarray, data)
    rounds = -(-updates // TOGETHER)
    optimiser = optax.chain(
        optax.clip_by_global_norm(1.0),
        optax.adamw(optax.cosine_decay_schedule(LEARNING_RATE, rounds * TOGETHER), weight_decay=WEIGHT_DECAY),
    )
    trained = start_training(optimiser, model)
    for round_key in jax.random.split(key, rounds):
        trained = _updates(trained, data, round_key, loss, optimiser, size)
        jax.block_until_ready(trained.opt_state)
        tick(TOGETHER)
    return trained.params


@eqx.filter_jit
def _updates(
    trained: Trained,
    data: PyTree,
    key: PRNGKeyArray,
    loss: Loss,
    optimiser: optax.GradientTransformation,
    size: int,
) -> Trained:
    """TOGETHER updates in one scan."""
    rows = jax.tree.leaves(data)[0].shape[0]

    def update(trained: Trained, key: PRNGKeyArray) -> tuple[Trained, None]:
        chosen = jax.random.randint(key, (size,), 0, rows)
        gradient = jax.grad(loss)(trained.params, jax.tree.map(lambda leaf: leaf[chosen], data))
        return descend(optimiser, trained, gradient)[0], None

    return jax.lax.scan(update, trained, jax.random.split(key, TOGETHER))[0]
