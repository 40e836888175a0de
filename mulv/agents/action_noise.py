"""DDPG's exploration noise on actions: σ falls linearly, and updates use clipped noise."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from mulv.core.limits import NOT_NEGATIVE, at_least
from mulv.core.options import Group


@dataclass(frozen=True)
class ActionNoise(Group):
    """Noise on actions."""

    name: ClassVar[str] = "noise"
    initial: Annotated[float, NOT_NEGATIVE] = 1.0
    """Deviation σ of the exploration noise at first."""
    final: Annotated[float, NOT_NEGATIVE] = 0.1
    """σ at the end; it falls on a line."""
    steps: Annotated[int, at_least(1)] = 10_000
    """Decisions until then, counted in rows of the replay."""
    clip: Annotated[float, NOT_NEGATIVE] = 0.3
    """Bound of the noise within updates; there is none on exploration."""


def noise_std(noise: ActionNoise, decisions: Float[Array, ""]) -> Float[Array, ""]:
    """σ after this many decisions."""
    progress = jnp.clip(decisions / noise.steps, 0.0, 1.0)
    return (1 - progress) * noise.initial + progress * noise.final


def clipped_noise(
    noise: ActionNoise, std: Float[Array, ""], shape: tuple[int, ...], key: PRNGKeyArray
) -> Float[Array, "*any"]:
    """Clipped Gaussian noise, which updates add to actions."""
    return jnp.clip(std * jax.random.normal(key, shape), -noise.clip, noise.clip)


def perturb(mean: Float[Array, "*any"], noise: Float[Array, "*any"]) -> Float[Array, "*any"]:
    """mean + noise, clipped to [-1, 1]; the gradient is that of the mean, even where it is clipped."""
    inside = jnp.clip(mean + noise, -1.0, 1.0)
    return jax.lax.stop_gradient(inside) + (mean - jax.lax.stop_gradient(mean))
