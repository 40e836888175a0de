"""Optimiser steps, and moving averages for target networks."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float

from mulv.core.types import PyTree


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


def polyak(target: PyTree, online: PyTree, tau: float) -> PyTree:
    """`target` moved a fraction τ towards `online`."""
    return jax.tree.map(lambda t, o: t + tau * (o - t) if eqx.is_inexact_array(o) else o, target, online)


def tree_all_finite(tree: PyTree) -> Array:
    """Whether no leaf holds a NaN or an infinity."""
    leaves = [jnp.all(jnp.isfinite(leaf)) for leaf in jax.tree.leaves(tree) if eqx.is_inexact_array(leaf)]
    return jnp.all(jnp.stack(leaves))
