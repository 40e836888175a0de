"""µLV-Rep, Algorithm 1: learn p(z | x, a) by an ELBO; Q is linear in its features, so plan by least squares.

See docs/algorithms/mulv.md, and exploration.md for the bonus.
"""

from dataclasses import dataclass
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, PRNGKeyArray

from mulv.agents.base import AbstractWindowAgent, reward_scale
from mulv.agents.mulv.config import MuLVConfig
from mulv.agents.mulv.critic import Added, LinearCritic, Model, solve_heads
from mulv.agents.mulv.ddpg import NoisyPolicy
from mulv.agents.mulv.elbo import ElboTerms, representation_loss
from mulv.agents.mulv.exploration import Bonus
from mulv.agents.mulv.groups import DDPGPolicy
from mulv.agents.mulv.inspection import inspect_representation
from mulv.agents.mulv.normalisation import (
    decoded,
    following_windows,
    normalise_batch,
    part,
    see_window,
    with_codes,
)
from mulv.agents.mulv.policy import ContinuousPolicy, DiscretePolicy, QFunction, believed
from mulv.agents.mulv.representation import Representation
from mulv.agents.mulv.state import MuLVState
from mulv.core.learner import Trained, descend, start_training, steps_taken, when
from mulv.core.normalise import ObsMoments, RunningMoments
from mulv.core.spec import BatchSpec, EnvSpec
from mulv.core.types import Batch, Metrics, Window
from mulv.nets.trunk import flatten_window


@dataclass(frozen=True)
class MuLV(AbstractWindowAgent):
    """Multi-step latent variable representation with a linear critic."""

    config: MuLVConfig
    spec: EnvSpec

    def __post_init__(self) -> None:
        self.spec.require_vectors("µLV-Rep")

    @property
    def batch_spec(self) -> BatchSpec:
        c = self.config
        return BatchSpec(c.batch_size * c.elbo.updates, c.window, c.n_step, c.elbo.future, c.discount)

    @property
    def optimiser(self) -> optax.GradientTransformation:
        return optax.adam(self.config.learning_rate)

    @property
    def policy(self) -> Any:
        if self.spec.discrete:
            return DiscretePolicy(self.config, self.spec)
        kind = NoisyPolicy if isinstance(self.config.policy, DDPGPolicy) else ContinuousPolicy
        return kind(self.config, self.spec)

    @property
    def bonus(self) -> Bonus:
        return Bonus(self.config)

    def init(self, key: PRNGKeyArray) -> MuLVState:
        representation_key, critic_key, actor_key = jax.random.split(key, 3)
        representation = Representation(self.spec, self.config, key=representation_key)
        critic = LinearCritic(self.config, key=critic_key)
        log_temperature = jnp.log(jnp.float32(self.policy.initial_temperature))
        return MuLVState(
            representation=start_training(self.optimiser, representation),
            critic=start_training(self.optimiser, critic),
            actor=start_training(self.optimiser, self.policy.init(actor_key)),
            log_temperature=start_training(self.optimiser, log_temperature),
            target_representation=jax.tree.map(jnp.copy, representation),
            target_critic=jax.tree.map(jnp.copy, critic),
            obs_moments=ObsMoments(RunningMoments(self.spec.obs_shape), RunningMoments(self.spec.obs_shape)),
            reward_moments=RunningMoments(()),
            optimism=self.bonus.init(critic, self.optimiser),
        )

    def act(self, state: MuLVState, memory: Window, noise: Float[Array, "act"] | None) -> Float[Array, "act"]:
        x_h = self.see(state, memory)
        temperature = jnp.exp(state.log_temperature.params)
        q = self._q_at(state, jax.tree.map(lambda leaf: leaf[None], x_h), explores=noise is not None)
        u = self._policy_input(state.target_representation, x_h)
        return self.policy.act(state.actor.params, q, u, temperature, noise)

    def update(self, state: MuLVState, batch: Batch, key: PRNGKeyArray) -> tuple[MuLVState, Metrics]:
        """Algorithm 1 on one batch: learn the representation, evaluate the policy on it, improve it."""
        elbo_key, value_key, policy_key = jax.random.split(key, 3)
        state = state.with_moments_of(batch)
        data, *others = self._seen(state, batch)

        # The actor improves on Q before this step, so that the encoding of x_h is shared with `_learn`.
        q = self._q_at(state, data.x_h)
        backup = partial(self._backup, state, data, value_key)
        targets, alone = self.bonus.backups(state.optimism, state.target_critic, backup)
        state, metrics, phi = self._learn(state, data, targets, elbo_key)
        if state.optimism is not None and alone is not None:
            optimism, bonus_metrics = self.bonus.learn(
                state.optimism, self.optimiser, state.critic.params, phi, alone, data.data_size
            )
            state, metrics = state._replace(optimism=optimism), metrics | bonus_metrics
        for i, other in enumerate(others, 1):
            state = self._learn_representation(state, other, jax.random.fold_in(elbo_key, i))

        due = self.config.policy_every == 1 or steps_taken(state.critic) % self.config.policy_every == 0
        (actor, log_temperature), policy_metrics = when(
            due, lambda: self._improve(state, data, q, policy_key), (state.actor, state.log_temperature)
        )
        state = state._replace(actor=actor, log_temperature=log_temperature)
        metrics |= policy_metrics | {"train/target_mean": jnp.mean(targets)}
        return state.with_targets_moved(self.config.tau), metrics

    def _improve(
        self, state: MuLVState, data: Batch, q: QFunction, key: PRNGKeyArray
    ) -> tuple[tuple[Trained, Trained], Metrics]:
        """Actor and temperature after one step towards higher Q, and metrics."""
        temperature = jnp.exp(state.log_temperature.params)
        u = jax.vmap(partial(self._policy_input, state.target_representation))(data.x_h)
        actor, entropy, metrics = self.policy.improve(state.actor, self.optimiser, q, u, temperature, key)
        log_temperature = self.policy.update_temperature(
            state.log_temperature, self.optimiser, entropy, data.data_size[0]
        )
        return (actor, log_temperature), metrics

    def update_critic(
        self, state: MuLVState, batch: Batch, a_hn: Float[Array, "batch act"], key: PRNGKeyArray
    ) -> tuple[MuLVState, Metrics]:
        """Policy evaluation of rewards only: the bonus is neither used nor updated."""
        state = state.with_moments_of(batch)
        data, *others = self._seen(state, batch)
        a_hn = a_hn[: self.config.batch_size]  # the rest of the batch is only for the representation
        q = Model(state.target_representation, state.target_critic).q_at(data.x_hn)
        targets = data.reward + data.discount * believed(self.config, q(a_hn))
        state, metrics, _ = self._learn(state, data, targets, key)
        for i, other in enumerate(others, 1):
            state = self._learn_representation(state, other, jax.random.fold_in(key, i))
        metrics |= {"train/target_mean": jnp.mean(targets)}
        return state.with_targets_moved(self.config.tau), metrics

    def q_values(self, state: MuLVState, memory: Window, a_h: Float[Array, "act"]) -> Float[Array, "head"]:
        x_h = self.see(state, memory)
        q = self._model(state).q_at(jax.tree.map(lambda leaf: leaf[None], x_h))
        return q(a_h[None])[0] * reward_scale(self.config, state.reward_moments)

    def see(self, state: MuLVState, x: Window) -> Window:
        """A window as representation and critic read it."""
        return see_window(self.config, state.obs_moments, state.reward_moments, x)

    def normalise(self, state: MuLVState, batch: Batch) -> Batch:
        """A batch as representation and critic read it."""
        data = normalise_batch(self.config, state.obs_moments, state.reward_moments, batch)
        if self.config.elbo.code_weight:
            later = self.see(state, following_windows(batch.x_h, batch.future))
            codes = jax.vmap(jax.vmap(state.target_representation.encode))(later)
            data = with_codes(self.config, data, codes.u)
        return data

    def _policy_input(self, target: Representation, x: Window) -> Float[Array, "in"]:
        """What the policy sees of a window: u, and perhaps the window itself, but nothing of rewards."""
        u = target.encode(x).u
        return jnp.concatenate([u, flatten_window(x)]) if self.config.policy_reads_window else u

    def _seen(self, state: MuLVState, batch: Batch) -> list[Batch]:
        """The normalised batch, split into one part for each update of the representation."""
        c = self.config
        seen = self.normalise(state, batch)
        return [part(seen, i, c.batch_size) for i in range(c.elbo.updates)]

    def _backup(
        self, state: MuLVState, data: Batch, key: PRNGKeyArray, critic: LinearCritic, added: Added | None
    ) -> Float[Array, "batch"]:
        """The n-step target Σ γ^i r_{h+i} + γ^n V(x_{h+n}), under the target networks."""
        target = Model(state.target_representation, critic)
        temperature = jnp.exp(state.log_temperature.params)
        u = jax.vmap(partial(self._policy_input, target.representation))(data.x_hn)
        value = self.policy.value(state.actor.params, target.q_at(data.x_hn, added), u, temperature, key)
        return data.reward + data.discount * value

    def _learn(
        self, state: MuLVState, data: Batch, targets: Float[Array, "batch"], key: PRNGKeyArray
    ) -> tuple[MuLVState, Metrics, Float[Array, "batch feature"]]:
        """A step on the ELBO and a step of least squares policy evaluation, both on one p(z | x_h, a_h).

        Returns the state, metrics, and φ of the batch.
        """
        c = self.config
        ridge = getattr(c.critic, "ridge", None)

        def loss(params: Model) -> tuple[Array, tuple[ElboTerms, Metrics, LinearCritic, Array]]:
            representation, critic = params
            code = jax.vmap(representation.encode)(data.x_h)
            p = jax.vmap(representation.p)(code, data.a_h) if c.critic.trains_representation else None
            elbo_loss, terms = representation_loss(c, representation, code, p, data, key)
            if p is None:  # the critic uses the target representation
                average = state.target_representation
                p = jax.vmap(average.p)(jax.vmap(average.encode)(data.x_h), data.a_h)
            phi = jax.vmap(critic.phi)(p)
            if ridge is not None:
                critic = solve_heads(critic, phi, targets, ridge)
            values = jax.vmap(critic.values)(phi)
            critic_loss = critic.loss(phi, values, targets)
            metrics = {
                "train/elbo": -elbo_loss,
                "train/critic_loss": critic_loss,
                "train/q_mean": jnp.mean(values),
            }
            return c.elbo.weight * elbo_loss + critic_loss, (terms, metrics, critic, phi)

        model = Model(state.representation.params, state.critic.params)
        gradient, (terms, metrics, solved, phi) = eqx.filter_grad(loss, has_aux=True)(model)
        representation, representation_norm = descend(
            self.optimiser, state.representation, gradient.representation
        )
        critic, critic_norm = descend(self.optimiser, state.critic, gradient.critic)
        if ridge is not None:
            critic = critic._replace(params=critic.params.with_w(solved.w))
        metrics |= {
            "train/obs_error": jnp.mean(jnp.sum(terms.obs, axis=-1)),
            "train/reward_error": jnp.mean(jnp.sum(terms.reward, axis=-1)),
            "train/kl": jnp.mean(jnp.sum(terms.kl, axis=-1)),
            "train/w_norm": jnp.linalg.norm(critic.params.w[:, 0]),
            "train/representation_grad_norm": representation_norm,
            "train/critic_grad_norm": critic_norm,
        }
        return state._replace(representation=representation, critic=critic), metrics, phi

    def _learn_representation(self, state: MuLVState, data: Batch, key: PRNGKeyArray) -> MuLVState:
        """The state after a step on the ELBO only."""

        def loss(representation: Representation) -> Array:
            code = jax.vmap(representation.encode)(data.x_h)
            return representation_loss(self.config, representation, code, None, data, key)[0]

        gradient = eqx.filter_grad(loss)(state.representation.params)
        return state._replace(representation=descend(self.optimiser, state.representation, gradient)[0])

    def latent(self, state: MuLVState, memory: Window, a_h: Float[Array, "act"]) -> Float[Array, "latent"]:
        """The mean of p(z | x_h, a_h), of the first z if there are twins."""
        model, x_h = state.representation.params, self.see(state, memory)
        return model.p(model.encode(x_h), a_h)[0].mean

    def inspect(self, state: MuLVState, batch: Batch, key: PRNGKeyArray) -> Metrics:
        data = self.normalise(state, batch)
        targets = self._backup(state, data, key, state.target_critic, self.bonus.added(state.optimism))
        level = data.x_h.obs[:, -1, : self.spec.obs_dim]
        repeated = decoded(self.config, jnp.zeros_like(level), level)
        return inspect_representation(*self._model(state), data, repeated, targets)

    def _model(self, state: MuLVState) -> Model:
        """The critic with the representation that it is trained on."""
        learns = self.config.critic.trains_representation
        representation = state.representation.params if learns else state.target_representation
        return Model(representation, state.critic.params)

    def _q_at(self, state: MuLVState, x: Window, explores: bool = True) -> QFunction:
        """a ↦ Q(x, a) = ⟨φ, w⟩ + b̂, by which actions are chosen.

        Without exploration an optimistic bonus is left out, and the critic trained on rewards only is used.
        """
        representation, critic = self._model(state)
        if state.optimism is not None and self.bonus.sees_rewards_alone(explores):
            return Model(representation, state.optimism.alone(critic)).q_at(x)
        return Model(representation, critic).q_at(x, self.bonus.added(state.optimism))
