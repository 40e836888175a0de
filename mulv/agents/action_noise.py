"""Exploration by noise on an action, as DDPG has it: its deviation falls on a line, updates clip it."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from mulv.agents.base import WindowConfig
from mulv.core.errors import MulvError


@dataclass(frozen=True)
class NoisyConfig(WindowConfig):
    """Hyperparameters of agents whose actions may be noisy."""

    noise_initial: float = 1.0
    """Deviation σ of the exploration noise at first."""
    noise_final: float = 0.1
    """σ at the end; it falls on a line."""
    noise_steps: int = 10_000
    """Decisions until then, counted in rows of the replay."""
    noise_clip: float = 0.3
    """Bound of the noise within updates; there is none on exploration."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.noise_steps < 1:
            raise MulvError(f"noise_steps is {self.noise_steps}; it must be at least 1")
        for name in ("noise_initial", "noise_final", "noise_clip"):
            if not getattr(self, name) >= 0:
                raise MulvError(f"{name} is {getattr(self, name)}; it must not be negative")


def noise_std(config: NoisyConfig, decisions: Float[Array, ""]) -> Float[Array, ""]:
    """σ after so many decisions."""
    progress = jnp.clip(decisions / config.noise_steps, 0.0, 1.0)
    return (1 - progress) * config.noise_initial + progress * config.noise_final


def clipped_noise(
    config: NoisyConfig, std: Float[Array, ""], shape: tuple[int, ...], key: PRNGKeyArray
) -> Float[Array, "*any"]:
    """The noise that updates put on actions."""
    return jnp.clip(std * jax.random.normal(key, shape), -config.noise_clip, config.noise_clip)


def perturb(mean: Float[Array, "*any"], noise: Float[Array, "*any"]) -> Float[Array, "*any"]:
    """mean + noise, cut off at the action box; its gradient is the mean's, beyond the edge too."""
    inside = jnp.clip(mean + noise, -1.0, 1.0)
    return jax.lax.stop_gradient(inside) + (mean - jax.lax.stop_gradient(mean))
