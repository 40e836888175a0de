"""SAC-MLP: soft actor-critic on the concatenated window, the paper's model-free baseline.

Haarnoja et al. 2018 with automatic entropy and twin critics. See docs/algorithms/sac.md.
"""

from dataclasses import dataclass
from typing import Annotated, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, PRNGKeyArray

from mulv.agents.actor_critic import MEASURED, ActorCriticConfig
from mulv.agents.base import (
    AbstractWindowAgent,
    normalise_window,
    past_rewards,
    reward_scale,
)
from mulv.core.learner import Trained, descend, polyak, start_training, steps_taken, when
from mulv.core.limits import POSITIVE
from mulv.core.normalise import ObsMoments, RunningMoments
from mulv.core.spec import BatchSpec, EnvSpec
from mulv.core.types import Batch, Metrics, Window
from mulv.nets.critic import QNetwork, q_values
from mulv.nets.policy import Actor, act_on
from mulv.nets.trunk import TrunkConfig, flat_window_dim, flatten_window


@dataclass(frozen=True)
class SACConfig(ActorCriticConfig):
    """Hyperparameters of SAC-MLP."""

    initial_temperature: Annotated[float, POSITIVE] = 0.1
    """Weight of the entropy at the start; it is tuned from there."""
    target_entropy_per_action: float = -1.0
    """Entropy that the temperature is tuned to, per action dimension."""


PRESETS = {
    "default": SACConfig(**vars(MEASURED)),
    "early": SACConfig(),  # the default before, which most figures of short runs are of
    "paper": SACConfig(
        window=4,
        normalise_observations=False,
        initial_temperature=1.0,
        tau=0.005,
        trunk=TrunkConfig("mlp", 256, 2),
    ),
}


class SACState(NamedTuple):
    """Everything SAC learns."""

    actor: Trained
    critics: Trained
    target_critics: QNetwork
    log_temperature: Trained
    obs_moments: ObsMoments
    reward_moments: RunningMoments


class Transitions(NamedTuple):
    """A batch as input of the networks: windows are flattened to vectors."""

    x_h: Float[Array, "batch in"]  # as the policy sees it
    a_h: Float[Array, "batch act"]
    reward: Float[Array, "batch"]  # n-step, scaled
    discount: Float[Array, "batch"]
    x_hn: Float[Array, "batch in"]
    critic_x_h: Float[Array, "batch critic_in"]  # as the critics see it
    critic_x_hn: Float[Array, "batch critic_in"]


@dataclass(frozen=True)
class SAC(AbstractWindowAgent):
    """Soft actor-critic on the window."""

    config: SACConfig
    spec: EnvSpec

    def __post_init__(self) -> None:
        self.spec.require_vectors("SAC-MLP")
        self.spec.require_continuous("SAC-MLP")

    @property
    def batch_spec(self) -> BatchSpec:
        c = self.config
        return BatchSpec(c.batch_size, c.window, c.n_step, future=1, gamma=c.discount)

    @property
    def optimiser(self) -> optax.GradientTransformation:
        return optax.adam(self.config.learning_rate)

    def init(self, key: PRNGKeyArray) -> SACState:
        c, spec = self.config, self.spec
        actor_key, critic_key = jax.random.split(key)
        in_dim = flat_window_dim(spec.obs_dim, spec.act_dim, c.window)
        actor = Actor(in_dim, spec.act_dim, c.trunk, key=actor_key)
        critic_dim = flat_window_dim(spec.obs_dim + c.critic_sees_rewards, spec.act_dim, c.window)
        critics = eqx.filter_vmap(lambda k: QNetwork(critic_dim + spec.act_dim, c.trunk, key=k))(
            jax.random.split(critic_key, 2)
        )
        return SACState(
            actor=start_training(self.optimiser, actor),
            critics=start_training(self.optimiser, critics),
            target_critics=jax.tree.map(jnp.copy, critics),
            log_temperature=start_training(self.optimiser, jnp.log(jnp.float32(c.initial_temperature))),
            obs_moments=ObsMoments(RunningMoments(spec.obs_shape), RunningMoments(spec.obs_shape)),
            reward_moments=RunningMoments(()),
        )

    def act(self, state: SACState, memory: Window, noise: Float[Array, "act"] | None) -> Float[Array, "act"]:
        policy = state.actor.params(flatten_window(normalise_window(self.config, state.obs_moments, memory)))
        return policy.at(noise)

    def update(self, state: SACState, batch: Batch, key: PRNGKeyArray) -> tuple[SACState, Metrics]:
        """One step of the critics (towards the soft n-step target), their targets, actor and temperature."""
        c = self.config
        target_key, actor_key = jax.random.split(key)
        noise_shape = batch.a_h.shape
        state, data = self._see(state, batch)
        temperature = jnp.exp(state.log_temperature.params)

        target_noise = jax.random.normal(target_key, noise_shape)
        a_hn, log_prob_hn = act_on(state.actor.params, data.x_hn, target_noise)
        state, critic_metrics = self._learn(state, data, a_hn, -temperature * log_prob_hn)
        due = c.policy_every == 1 or steps_taken(state.critics) % c.policy_every == 0
        noise = jax.random.normal(actor_key, noise_shape)
        (actor, log_temperature), policy_metrics = when(
            due, lambda: self._improve(state, data, noise), (state.actor, state.log_temperature)
        )
        state = state._replace(actor=actor, log_temperature=log_temperature)
        return state, critic_metrics | policy_metrics

    def _improve(
        self, state: SACState, data: Transitions, noise: Float[Array, "batch act"]
    ) -> tuple[tuple[Trained, Trained], Metrics]:
        """Actor and temperature after one step, and metrics."""
        temperature = jnp.exp(state.log_temperature.params)

        def actor_loss(actor: Actor) -> tuple[Array, Array]:
            a, log_prob = act_on(actor, data.x_h, noise)
            values = self._believed(q_values(state.critics.params, data.critic_x_h, a))
            return jnp.mean(temperature * log_prob - values), jnp.mean(log_prob)

        (loss, log_prob), gradient = eqx.filter_value_and_grad(actor_loss, has_aux=True)(state.actor.params)
        actor, actor_grad_norm = descend(self.optimiser, state.actor, gradient)

        # d/d(log T) of −log T · (log π + target entropy): T rises while the policy is too certain.
        target_entropy = self.config.target_entropy_per_action * self.spec.act_dim
        log_temperature, _ = descend(self.optimiser, state.log_temperature, -(log_prob + target_entropy))
        return (actor, log_temperature), {
            "train/actor_loss": loss,
            "train/ent_coef": temperature,
            "train/entropy": -log_prob,
            "train/actor_grad_norm": actor_grad_norm,
        }

    def update_critic(
        self, state: SACState, batch: Batch, a_hn: Float[Array, "batch act"], key: PRNGKeyArray
    ) -> tuple[SACState, Metrics]:
        state, data = self._see(state, batch)
        return self._learn(state, data, a_hn, jnp.zeros_like(batch.reward))

    def q_values(self, state: SACState, memory: Window, a_h: Float[Array, "act"]) -> Float[Array, "head"]:
        x_h = flatten_window(
            self._critic_input(state, normalise_window(self.config, state.obs_moments, memory))
        )
        values = q_values(state.critics.params, x_h[None], a_h[None])[:, 0]
        return values * reward_scale(self.config, state.reward_moments)

    def _believed(self, values: Float[Array, "head batch"]) -> Float[Array, "batch"]:
        """The Q value that targets and policy use: minimum or mean of the two critics."""
        return jnp.min(values, axis=0) if self.config.double_q == "lower" else jnp.mean(values, axis=0)

    def _see(self, state: SACState, batch: Batch) -> tuple[SACState, Transitions]:
        """The state with running statistics updated by this batch, and the normalised batch."""
        c = self.config
        obs_moments = state.obs_moments.update(batch.x_h.obs[:, -1], batch.future.obs[:, 0])
        reward_moments = state.reward_moments.update(batch.future.rewards[:, 0])
        rewards = batch.reward / reward_scale(c, reward_moments)
        state = state._replace(obs_moments=obs_moments, reward_moments=reward_moments)
        seen = [normalise_window(c, obs_moments, x) for x in (batch.x_h, batch.x_hn)]
        x_h, x_hn = (jax.vmap(flatten_window)(x) for x in seen)
        of_critic = (jax.vmap(flatten_window)(self._critic_input(state, x)) for x in seen)
        return state, Transitions(x_h, batch.a_h, rewards, batch.discount, x_hn, *of_critic)

    def _critic_input(self, state: SACState, x: Window) -> Window:
        if not self.config.critic_sees_rewards:
            return x
        rewards = past_rewards(self.config, state.reward_moments, x)[..., None]
        return x._replace(obs=jnp.concatenate([x.obs, rewards], axis=-1))

    def _learn(
        self,
        state: SACState,
        data: Transitions,
        a_hn: Float[Array, "batch act"],
        entropy_hn: Float[Array, "batch"],
    ) -> tuple[SACState, Metrics]:
        """One step of the critics to the n-step target of a policy that takes a_hn, and of their targets."""
        value_hn = self._believed(q_values(state.target_critics, data.critic_x_hn, a_hn)) + entropy_hn
        targets = data.reward + data.discount * value_hn

        def critic_loss(critics: QNetwork) -> tuple[Array, Array]:
            values = q_values(critics, data.critic_x_h, data.a_h)
            return jnp.sum(jnp.mean(jnp.square(values - targets[None]), axis=1)), jnp.mean(values)

        (loss, q_mean), gradient = eqx.filter_value_and_grad(critic_loss, has_aux=True)(state.critics.params)
        critics, norm = descend(self.optimiser, state.critics, gradient)
        target_critics = polyak(state.target_critics, critics.params, self.config.tau)
        return state._replace(critics=critics, target_critics=target_critics), {
            "train/critic_loss": loss,
            "train/q_mean": q_mean,
            "train/target_mean": jnp.mean(targets),
            "train/critic_grad_norm": norm,
        }
