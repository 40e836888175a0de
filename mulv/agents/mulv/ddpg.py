"""DDPG on Q(x, ·): a deterministic actor with decaying exploration noise, as in the published pixel code."""

from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, PRNGKeyArray

from mulv.agents.action_noise import ActionNoise, clipped_noise, noise_std, perturb
from mulv.agents.mulv.groups import DDPGPolicy
from mulv.agents.mulv.policy import Codes, ContinuousPolicy, QFunction, Temperature, believed
from mulv.core.learner import Trained, descend
from mulv.core.types import Metrics
from mulv.nets.policy import Actor

LEAST_STD = 1e-6  # above 0, because the state holds the logarithm


@dataclass(frozen=True)
class NoisyPolicy(ContinuousPolicy):
    """a = tanh of the actor's mean, plus noise of deviation σ, which is stored in place of the temperature.

    Targets and actor loss use clipped noise, which smooths Q over actions near the actor's.
    """

    @property
    def _noise_options(self) -> ActionNoise:
        assert isinstance(self.config.policy, DDPGPolicy)
        return self.config.policy.noise

    @property
    def initial_temperature(self) -> float:
        return max(self._noise_options.initial, LEAST_STD)

    def act(
        self,
        actor: Actor,
        q: QFunction,
        u: Float[Array, "width"],
        temperature: Temperature,
        noise: Float[Array, "act"] | None,
    ) -> Float[Array, "act"]:
        """The action at one window."""
        mean = actor(u).mode()
        return mean if noise is None else perturb(mean, temperature * noise)

    def value(
        self, actor: Actor, q: QFunction, u: Codes, temperature: Temperature, key: PRNGKeyArray
    ) -> Float[Array, "batch"]:
        """V(x) of the present policy."""
        return believed(self.config, q(self._near(actor, u, temperature, key)))

    def improve(
        self,
        trained: Trained,
        optimiser: optax.GradientTransformation,
        q: QFunction,
        u: Codes,
        temperature: Temperature,
        key: PRNGKeyArray,
    ) -> tuple[Trained, Float[Array, ""], Metrics]:
        """The actor after one step, 0 for its entropy, and metrics."""

        def actor_loss(actor: Actor) -> Array:
            return -jnp.mean(believed(self.config, q(self._near(actor, u, temperature, key))))

        loss, gradient = eqx.filter_value_and_grad(actor_loss)(trained.params)
        trained, norm = descend(optimiser, trained, gradient)
        metrics = {"train/actor_loss": loss, "train/actor_grad_norm": norm, "train/noise_std": temperature}
        return trained, jnp.zeros(()), metrics

    def update_temperature(
        self,
        log_temperature: Trained,
        optimiser: optax.GradientTransformation,
        entropy: Float[Array, ""],
        data_size: Float[Array, ""],
    ) -> Trained:
        """σ for this size of the replay, as its logarithm."""
        return log_temperature._replace(
            params=jnp.log(jnp.maximum(noise_std(self._noise_options, data_size), LEAST_STD))
        )

    def _near(self, actor: Actor, u: Codes, std: Temperature, key: PRNGKeyArray) -> Float[Array, "batch act"]:
        mean = jax.vmap(lambda u: actor(u).mode())(u)
        return perturb(mean, clipped_noise(self._noise_options, std, mean.shape, key))
