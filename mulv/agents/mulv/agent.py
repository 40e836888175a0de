"""µLV-Rep, Algorithm 1: learn p(z | x, a) by an ELBO; Q is linear in its features, so plan by least squares.

See docs/algorithms/mulv.md.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, PRNGKeyArray

from mulv.agents.base import AbstractAgent, as_seen, reward_scale
from mulv.agents.mulv.config import MuLVConfig
from mulv.agents.mulv.inspection import inspect_representation
from mulv.agents.mulv.planning import Critic, solve_heads
from mulv.agents.mulv.policy import Values, policy_for
from mulv.agents.mulv.representation import (
    Explanation,
    Representation,
    explain_batch,
    latent_noise,
    negative_elbo,
)
from mulv.core.learner import Trained, descend, polyak, start_training
from mulv.core.normalise import ObsMoments, RunningMoments
from mulv.core.spec import BatchSpec, EnvSpec
from mulv.core.types import Batch, Metrics, Window
from mulv.core.window import WindowMemory


class MuLVState(NamedTuple):
    """Everything µLV-Rep learns."""

    representation: Trained
    critic: Trained
    actor: Trained  # no parameters where actions are discrete
    log_temperature: Trained
    target_representation: Representation
    target_critic: Critic
    obs_moments: ObsMoments
    reward_moments: RunningMoments


class Model(NamedTuple):
    """What a value is computed with."""

    representation: Representation
    critic: Critic

    def q_at(self, x: Window) -> Values:
        """a ↦ Q(x, a) = ⟨φ(x, a), w⟩ at a batch of windows, which are encoded once."""
        representation, critic = self
        u = jax.vmap(representation.encode)(x)

        def q(a: Float[Array, "batch act"]) -> Float[Array, "batch head"]:
            return jax.vmap(lambda u, a: critic.values(critic.phi(representation.p(u, a))))(u, a)

        return q


@dataclass(frozen=True)
class MuLV(AbstractAgent):
    """Multi-step latent variable representation with a linear critic."""

    config: MuLVConfig
    spec: EnvSpec

    def __post_init__(self) -> None:
        self.spec.require_vectors("µLV-Rep")

    @property
    def batch_spec(self) -> BatchSpec:
        c = self.config
        return BatchSpec(c.batch_size * c.representation_updates, c.window, c.n_step, c.future, c.gamma)

    @property
    def optimiser(self) -> optax.GradientTransformation:
        return optax.adam(self.config.learning_rate)

    @property
    def policy(self) -> Any:
        return policy_for(self.config, self.spec)

    def init(self, key: PRNGKeyArray) -> MuLVState:
        representation_key, critic_key, actor_key = jax.random.split(key, 3)
        representation = Representation(self.spec, self.config, key=representation_key)
        critic = Critic(self.config, key=critic_key)
        log_temperature = jnp.log(jnp.float32(self.config.initial_temperature))
        return MuLVState(
            representation=start_training(self.optimiser, representation),
            critic=start_training(self.optimiser, critic),
            actor=start_training(self.optimiser, self.policy.init(actor_key)),
            log_temperature=start_training(self.optimiser, log_temperature),
            target_representation=jax.tree.map(jnp.copy, representation),
            target_critic=jax.tree.map(jnp.copy, critic),
            obs_moments=ObsMoments(RunningMoments(self.spec.obs_shape), RunningMoments(self.spec.obs_shape)),
            reward_moments=RunningMoments(()),
        )

    def init_memory(self) -> WindowMemory:
        return WindowMemory(self.spec, self.config.window)

    def act(
        self,
        state: MuLVState,
        memory: WindowMemory,
        o_h: Float[Array, "obs"],
        key: PRNGKeyArray,
        *,
        deterministic: bool,
    ) -> tuple[Float[Array, "act"], WindowMemory]:
        memory = memory.push_obs(o_h)
        x_h = as_seen(self.config, state.obs_moments, memory.x_h)
        temperature = jnp.exp(state.log_temperature.params)
        q = self._model(state).q_at(jax.tree.map(lambda leaf: leaf[None], x_h))
        u = state.target_representation.encode(x_h)
        a_h = self.policy.act(state.actor.params, q, u, temperature, key, deterministic)
        return a_h, memory.push_action(a_h)

    def update(self, state: MuLVState, batch: Batch, key: PRNGKeyArray) -> tuple[MuLVState, Metrics]:
        """Algorithm 1 on one batch: learn the representation, evaluate the policy on it, improve it."""
        c = self.config
        elbo_key, value_key, policy_key = jax.random.split(key, 3)
        o_h, o_h1, r_h = batch.x_h.obs[:, -1], batch.future.obs[:, 0], batch.future.rewards[:, 0]
        state = state._replace(
            obs_moments=state.obs_moments.update(o_h, o_h1),
            reward_moments=state.reward_moments.update(r_h),
        )
        seen = self._as_networks_see(state, batch)
        data, *others = (_part(seen, i, c.batch_size) for i in range(c.representation_updates))

        targets = self._backup(state, data, value_key)
        state, metrics = self._learn(state, data, targets, elbo_key)
        for i, other in enumerate(others, 1):
            state = self._learn_representation(state, other, jax.random.fold_in(elbo_key, i))

        temperature = jnp.exp(state.log_temperature.params)
        q, u = self._model(state).q_at(data.x_h), jax.vmap(state.target_representation.encode)(data.x_h)
        actor, entropy, policy_metrics = self.policy.improve(
            state.actor, self.optimiser, q, u, temperature, policy_key
        )
        # d/d(log α) of log α · (entropy − its target): α rises while the policy is too certain.
        surplus = entropy - self.policy.target_entropy
        log_temperature, _ = descend(self.optimiser, state.log_temperature, surplus)
        state = state._replace(
            actor=actor,
            log_temperature=log_temperature,
            target_representation=polyak(state.target_representation, state.representation.params, c.tau),
            target_critic=polyak(state.target_critic, state.critic.params, c.tau),
        )
        policy_metrics |= {"train/ent_coef": temperature, "train/entropy": entropy}
        return state, metrics | policy_metrics | {"train/target_mean": jnp.mean(targets)}

    def _backup(self, state: MuLVState, data: Batch, key: PRNGKeyArray) -> Float[Array, "batch"]:
        """The L-step backup: Σ γ^i r_{h+i} + γ^n V(x_{h+n}), under the target networks."""
        target = Model(state.target_representation, state.target_critic)
        temperature = jnp.exp(state.log_temperature.params)
        u = jax.vmap(target.representation.encode)(data.x_hn)
        value = self.policy.value(state.actor.params, target.q_at(data.x_hn), u, temperature, key)
        return data.reward + data.discount * value

    def _learn(
        self, state: MuLVState, data: Batch, targets: Float[Array, "batch"], key: PRNGKeyArray
    ) -> tuple[MuLVState, Metrics]:
        """A step on the ELBO and a step of least squares policy evaluation; p(z | x_h, a_h) serves both."""
        c = self.config
        noise = latent_noise(c, c.batch_size, key)

        def loss(params: Model) -> tuple[Array, tuple[Explanation, Metrics, Critic]]:
            representation, critic = params
            u = jax.vmap(representation.encode)(data.x_h)
            p = jax.vmap(representation.p)(u, data.a_h)
            terms = explain_batch(representation, u, p, data, noise, c.kl_balance)
            elbo_loss = jnp.mean(jax.vmap(lambda t: negative_elbo(t, c))(terms))
            if not c.critic_trains_representation:  # the critic stands on the moving average
                average = state.target_representation
                p = jax.vmap(average.p)(jax.vmap(average.encode)(data.x_h), data.a_h)
            phi = jax.vmap(critic.phi)(p)
            if c.solver == "ridge":
                critic = critic.with_w(jax.lax.stop_gradient(solve_heads(phi, targets, c.ridge)))
            values = jax.vmap(critic.values)(phi)
            critic_loss = jnp.sum(jnp.mean(jnp.square(values - targets[:, None]), axis=0))
            metrics = {
                "train/elbo": -elbo_loss,
                "train/critic_loss": critic_loss,
                "train/q_mean": jnp.mean(values),
            }
            return c.elbo_weight * elbo_loss + critic_loss, (terms, metrics, critic)

        model = Model(state.representation.params, state.critic.params)
        gradient, (terms, metrics, solved) = eqx.filter_grad(loss, has_aux=True)(model)
        representation, representation_norm = descend(
            self.optimiser, state.representation, gradient.representation
        )
        critic, critic_norm = descend(self.optimiser, state.critic, gradient.critic)
        if c.solver == "ridge":
            critic = critic._replace(params=critic.params.with_w(solved.w))
        return state._replace(representation=representation, critic=critic), metrics | {
            "train/obs_error": jnp.mean(jnp.sum(terms.obs, axis=-1)),
            "train/reward_error": jnp.mean(jnp.sum(terms.reward, axis=-1)),
            "train/kl": jnp.mean(jnp.sum(terms.kl, axis=-1)),
            "train/w_norm": jnp.linalg.norm(critic.params.w[:, 0]),
            "train/representation_grad_norm": representation_norm,
            "train/critic_grad_norm": critic_norm,
        }

    def _learn_representation(self, state: MuLVState, data: Batch, key: PRNGKeyArray) -> MuLVState:
        """A step on the ELBO alone."""
        c = self.config
        noise = latent_noise(c, c.batch_size, key)

        def loss(representation: Representation) -> Array:
            u = jax.vmap(representation.encode)(data.x_h)
            p = jax.vmap(representation.p)(u, data.a_h)
            terms = explain_batch(representation, u, p, data, noise, c.kl_balance)
            return jnp.mean(jax.vmap(lambda t: negative_elbo(t, c))(terms))

        gradient = eqx.filter_grad(loss)(state.representation.params)
        return state._replace(representation=descend(self.optimiser, state.representation, gradient)[0])

    def latent(self, state: MuLVState, memory: WindowMemory) -> Float[Array, "latent"]:
        """The mean of p(z | x_h, a_h)."""
        representation = state.representation.params
        u = representation.encode(as_seen(self.config, state.obs_moments, memory.x_h))
        return representation.p(u, memory.actions[-1]).mean

    def inspect(self, state: MuLVState, batch: Batch, key: PRNGKeyArray) -> Metrics:
        data = self._as_networks_see(state, batch)
        o_h = jnp.zeros_like(data.x_h.obs[:, -1]) if self.config.predict_changes else data.x_h.obs[:, -1]
        return inspect_representation(*self._model(state), data, o_h, self._backup(state, data, key))

    def _model(self, state: MuLVState) -> Model:
        """What actions are chosen by: the critic and the representation that it is trained on."""
        learns = self.config.critic_trains_representation
        representation = state.representation.params if learns else state.target_representation
        return Model(representation, state.critic.params)

    def _as_networks_see(self, state: MuLVState, batch: Batch) -> Batch:
        """Whitened observations; what the decoder explains is of unit mean square."""
        c, future = self.config, batch.future
        if c.predict_changes:
            before = jnp.concatenate([batch.x_h.obs[:, -1:], future.obs[:, :-1]], axis=1)
            obs = state.obs_moments.change.scale(future.obs - before)
        else:
            obs = state.obs_moments.level.whiten(future.obs) if c.normalise_observations else future.obs
        obs = jnp.where(future.mask[..., None], obs, 0.0)
        return batch._replace(
            x_h=as_seen(c, state.obs_moments, batch.x_h),
            x_hn=as_seen(c, state.obs_moments, batch.x_hn),
            reward=batch.reward / reward_scale(c, state.reward_moments),
            future=future._replace(obs=obs, rewards=state.reward_moments.scale(future.rewards)),
        )


def _part(batch: Batch, number: int, size: int) -> Batch:
    return jax.tree.map(lambda leaf: leaf[number * size : (number + 1) * size], batch)
