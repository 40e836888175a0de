"""Behaviour cloning: predicts recorded actions from the window. The baseline of offline learning.

See docs/algorithms/offline.md.
"""

from dataclasses import dataclass
from typing import Annotated, Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, PRNGKeyArray

from mulv.agents.base import AbstractWindowAgent, WindowConfig, normalise_window
from mulv.core.gaussian import TanhNormal
from mulv.core.learner import Trained, descend, start_training
from mulv.core.limits import at_least
from mulv.core.normalise import ObsMoments, RunningMoments
from mulv.core.spec import BatchSpec, EnvSpec
from mulv.core.types import Batch, Metrics, Window
from mulv.nets.policy import Actor
from mulv.nets.trunk import flat_window_dim, flatten_window


@dataclass(frozen=True)
class BCConfig(WindowConfig):
    """Hyperparameters of behaviour cloning; rewards, and what only they need, play no part."""

    window: Annotated[int, at_least(1)] = 3
    """L: observations in the window x_h."""
    loss: Literal["likelihood", "mse"] = "mse"
    """Maximum likelihood of the tanh-Gaussian, or the squared error of its mode."""


PRESETS = {"default": BCConfig()}


class BCState(NamedTuple):
    """Everything behaviour cloning learns."""

    actor: Trained
    obs_moments: ObsMoments


@dataclass(frozen=True)
class BC(AbstractWindowAgent):
    """Behaviour cloning on the window."""

    config: BCConfig
    spec: EnvSpec

    def __post_init__(self) -> None:
        self.spec.require_vectors("BC")
        self.spec.require_continuous("BC")

    @property
    def batch_spec(self) -> BatchSpec:
        c = self.config
        return BatchSpec(c.batch_size, c.window, n_step=1, future=1, gamma=c.discount)

    @property
    def optimiser(self) -> optax.GradientTransformation:
        return optax.adam(self.config.learning_rate)

    def init(self, key: PRNGKeyArray) -> BCState:
        c, spec = self.config, self.spec
        in_dim = flat_window_dim(spec.obs_dim, spec.act_dim, c.window)
        return BCState(
            actor=start_training(self.optimiser, Actor(in_dim, spec.act_dim, c.trunk, key=key)),
            obs_moments=ObsMoments(RunningMoments(spec.obs_shape), RunningMoments(spec.obs_shape)),
        )

    def act(self, state: BCState, memory: Window, noise: Float[Array, "act"] | None) -> Float[Array, "act"]:
        policy = state.actor.params(flatten_window(normalise_window(self.config, state.obs_moments, memory)))
        return policy.at(noise)

    def update(self, state: BCState, batch: Batch, key: PRNGKeyArray) -> tuple[BCState, Metrics]:
        """One step of the actor towards the batch's actions; no randomness is used."""
        c = self.config
        obs_moments = state.obs_moments.update(batch.x_h.obs[:, -1], batch.future.obs[:, 0])
        x_h = jax.vmap(flatten_window)(normalise_window(c, obs_moments, batch.x_h))

        def loss(actor: Actor) -> tuple[Array, Metrics]:
            policy: TanhNormal = jax.vmap(actor)(x_h)
            squared_error = jnp.mean(jnp.square(jax.vmap(TanhNormal.mode)(policy) - batch.a_h))
            log_prob = jnp.mean(jax.vmap(TanhNormal.log_prob)(policy, batch.a_h))
            value = -log_prob if c.loss == "likelihood" else squared_error
            return value, {
                "train/actor_loss": value,
                "train/action_mse": squared_error,
                "train/log_prob": log_prob,
            }

        (_, metrics), gradient = eqx.filter_value_and_grad(loss, has_aux=True)(state.actor.params)
        actor, norm = descend(self.optimiser, state.actor, gradient)
        return BCState(actor, obs_moments), metrics | {"train/actor_grad_norm": norm}
