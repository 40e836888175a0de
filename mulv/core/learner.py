"""Optimiser steps, and moving averages for target networks."""

from collections.abc import Callable
from typing import NamedTuple, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Bool, Float, Int

from mulv.core.types import Metrics, PyTree

T = TypeVar("T")


class Trained(NamedTuple):
    """Parameters with their optimiser state."""

    params: PyTree
    opt_state: optax.OptState


def start_training(optimiser: optax.GradientTransformation, params: PyTree) -> Trained:
    """`params` with an initial optimiser state."""
    return Trained(params, optimiser.init(eqx.filter(params, eqx.is_inexact_array)))


def descend(
    optimiser: optax.GradientTransformation, trained: Trained, gradient: PyTree
) -> tuple[Trained, Float[Array, ""]]:
    """The result of one optimiser step, and the gradient's norm, which is finite only if every entry is."""
    updates, opt_state = optimiser.update(gradient, trained.opt_state, trained.params)
    return Trained(eqx.apply_updates(trained.params, updates), opt_state), optax.tree.norm(gradient)


def steps_taken(trained: Trained) -> Int[Array, ""]:
    """How many optimiser steps made these parameters."""
    return optax.tree.get(trained.opt_state, "count")


def when(due: Bool[Array, ""] | bool, step: Callable[[], tuple[T, Metrics]], kept: T) -> tuple[T, Metrics]:
    """The result and metrics of `step` when it is due; else `kept`, and zeros for metrics."""
    if isinstance(due, bool) and due:  # known before anything is compiled
        return step()
    nothing = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), jax.eval_shape(step)[1])
    return jax.lax.cond(due, step, lambda: (kept, nothing))


def polyak(target: PyTree, online: PyTree, tau: float) -> PyTree:
    """`target` moved a fraction τ towards `online`."""
    return jax.tree.map(lambda t, o: t + tau * (o - t) if eqx.is_inexact_array(o) else o, target, online)


def tree_all_finite(tree: PyTree) -> Array:
    """Whether no leaf holds a NaN or an infinity."""
    leaves = [jnp.all(jnp.isfinite(leaf)) for leaf in jax.tree.leaves(tree) if eqx.is_inexact_array(leaf)]
    return jnp.all(jnp.stack(leaves))
