"""What an agent carries between steps. The window x_h is one memory; a recurrent state would be another."""

from abc import abstractmethod
from typing import Self

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from mulv.core.spec import EnvSpec
from mulv.core.types import Window


class AbstractMemory(eqx.Module):
    """Acting, evaluation and export know an agent's memory only by this interface."""

    @abstractmethod
    def reset(self) -> Self:
        """The memory at the start of an episode, before anything was seen."""

    @abstractmethod
    def push_obs(self, o_h: Float[Array, "obs"]) -> Self:
        """The memory after seeing o_h."""

    @abstractmethod
    def push_action(self, a_h: Float[Array, "act"]) -> Self:
        """The memory after taking a_h."""


class WindowMemory(AbstractMemory):
    """The last L observations, the action taken at each, and which of them are real."""

    obs: Float[Array, "window obs"]
    actions: Float[Array, "window act"]
    mask: Bool[Array, "window"]

    def __init__(self, spec: EnvSpec, length: int):
        self.obs = jnp.zeros((length, *spec.obs_shape), spec.obs_dtype)
        self.actions = jnp.zeros((length, spec.act_dim))
        self.mask = jnp.zeros(length, bool)

    def reset(self) -> Self:
        return eqx.tree_at(
            lambda m: (m.obs, m.actions, m.mask),
            self,
            (jnp.zeros_like(self.obs), jnp.zeros_like(self.actions), jnp.zeros_like(self.mask)),
        )

    def push_obs(self, o_h: Float[Array, "obs"]) -> Self:
        return eqx.tree_at(
            lambda m: (m.obs, m.actions, m.mask),
            self,
            (
                jnp.concatenate([self.obs[1:], o_h[None]]),
                jnp.concatenate([self.actions[1:], jnp.zeros_like(self.actions[:1])]),
                jnp.concatenate([self.mask[1:], jnp.ones(1, bool)]),
            ),
        )

    def push_action(self, a_h: Float[Array, "act"]) -> Self:
        return eqx.tree_at(lambda m: m.actions, self, self.actions.at[-1].set(a_h))

    @property
    def x_h(self) -> Window:
        """The window as networks see it: the action slot of the newest observation is still empty."""
        return Window(self.obs, self.actions[:-1], self.mask)
