"""µLV-Rep, Algorithm 1: learn p(z | x, a) by an ELBO; Q is linear in its features, so plan by least squares.

See docs/algorithms/mulv.md.
"""

from dataclasses import dataclass
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, PRNGKeyArray

from mulv.agents.base import AbstractAgent, reward_scale, whiten
from mulv.agents.mulv.config import MuLVConfig
from mulv.agents.mulv.planning import HEADS, Critic, least_squares, maximise
from mulv.agents.mulv.representation import Latent, Representation, explain, latent_noise, negative_elbo
from mulv.core.learner import Trained, descend, polyak, start_training
from mulv.core.normalise import RunningMoments
from mulv.core.spec import BatchSpec, EnvSpec
from mulv.core.types import Batch, Metrics, Window
from mulv.core.window import WindowMemory
from mulv.nets.policy import Actor, act_on
from mulv.nets.trunk import flat_window_dim


class MuLVState(NamedTuple):
    """Everything µLV-Rep learns."""

    representation: Trained
    critic: Trained
    actor: Trained  # no parameters where actions are discrete
    log_temperature: Trained
    target_representation: Representation
    target_critic: Critic
    obs_moments: RunningMoments
    reward_moments: RunningMoments


class Model(NamedTuple):
    """What a value is computed with."""

    representation: Representation
    critic: Critic

    def q(self, x: Window, a: Float[Array, "batch act"]) -> Float[Array, "batch head"]:
        """Q(x, a) = ⟨φ(x, a), w⟩ of a batch."""
        return jax.vmap(lambda x, a: self.critic.values(self.critic.phi(self.representation.p(x, a))))(x, a)


@dataclass(frozen=True)
class MuLV(AbstractAgent):
    """Multi-step latent variable representation with a linear critic."""

    config: MuLVConfig
    spec: EnvSpec

    @property
    def batch_spec(self) -> BatchSpec:
        c = self.config
        return BatchSpec(c.batch_size * c.representation_updates, c.window, c.n_step, c.future, c.gamma)

    @property
    def optimiser(self) -> optax.GradientTransformation:
        return optax.adam(self.config.learning_rate)

    def init(self, key: PRNGKeyArray) -> MuLVState:
        c, spec = self.config, self.spec
        representation_key, critic_key, actor_key = jax.random.split(key, 3)
        representation = Representation(spec, c, key=representation_key)
        critic = Critic(c, key=critic_key)
        in_dim = flat_window_dim(spec.obs_dim, spec.act_dim, c.window)
        actor = () if spec.discrete else Actor(in_dim, spec.act_dim, c.trunk, key=actor_key)
        return MuLVState(
            representation=start_training(self.optimiser, representation),
            critic=start_training(self.optimiser, critic),
            actor=start_training(self.optimiser, actor),
            log_temperature=start_training(self.optimiser, jnp.log(jnp.float32(c.initial_temperature))),
            target_representation=jax.tree.map(jnp.copy, representation),
            target_critic=jax.tree.map(jnp.copy, critic),
            obs_moments=RunningMoments(spec.obs_shape),
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
        x_h = whiten(self.config, state.obs_moments, memory.x_h)
        if self.spec.discrete:
            a_h = self._choose(state, x_h, key, deterministic)
        else:
            policy = state.actor.params(x_h)
            noise = jax.random.normal(key, (self.spec.act_dim,))
            a_h = policy.mode() if deterministic else policy.sample_and_log_prob(noise)[0]
        return a_h, memory.push_action(a_h)

    def _choose(
        self, state: MuLVState, x_h: Window, key: PRNGKeyArray, deterministic: bool
    ) -> Float[Array, "act"]:
        """One of finitely many actions, as a one-hot vector."""
        model = self._model(state)
        q = self._all_q(model, jax.tree.map(lambda leaf: leaf[None], x_h))[0]
        _, probability = maximise(q, jnp.exp(state.log_temperature.params), self.config.discrete_policy)
        if self.config.discrete_policy == "greedy":
            rate = self.config.exploration_rate
            probability = (1 - rate) * probability + rate / self.spec.act_dim
        index = jnp.argmax(q) if deterministic else jax.random.categorical(key, jnp.log(probability))
        return jax.nn.one_hot(index, self.spec.act_dim)

    def _model(self, state: MuLVState) -> Model:
        """What values are read from: the critic stands on the representation, or on its moving average."""
        learns = self.config.critic_trains_representation
        representation = state.representation.params if learns else state.target_representation
        return Model(representation, state.critic.params)

    def _all_q(self, model: Model, x: Window) -> Float[Array, "batch act"]:
        """The lower of the heads' values, of every discrete action."""
        batch, actions = x.mask.shape[0], self.spec.act_dim

        def of(action: Float[Array, "act"]) -> Float[Array, "batch"]:
            return jnp.min(model.q(x, jnp.broadcast_to(action, (batch, actions))), axis=-1)

        return jax.vmap(of, out_axes=1)(jnp.eye(actions))

    def update(self, state: MuLVState, batch: Batch, key: PRNGKeyArray) -> tuple[MuLVState, Metrics]:
        """Algorithm 1 on one batch: learn the representation, evaluate the policy on it, improve the policy."""
        c = self.config
        elbo_key, value_key, policy_key = jax.random.split(key, 3)
        obs_moments = state.obs_moments.update(batch.x_h.obs[:, -1])
        reward_moments = state.reward_moments.update(batch.future.rewards[:, 0])
        state = state._replace(obs_moments=obs_moments, reward_moments=reward_moments)
        seen = self._as_networks_see(state, batch)
        data = jax.tree.map(lambda leaf: leaf[: c.batch_size], seen)

        temperature = jnp.exp(state.log_temperature.params)
        targets = data.reward + data.discount * self._value(state, data.x_hn, temperature, value_key)
        state, metrics = self._fit(state, data, targets, elbo_key)
        for i in range(1, c.representation_updates):
            extra = jax.tree.map(lambda leaf, i=i: leaf[i * c.batch_size : (i + 1) * c.batch_size], seen)
            state = self._fit_representation(state, extra, jax.random.fold_in(elbo_key, i))
        state, policy_metrics = self._improve(state, data.x_h, temperature, policy_key)
        state = state._replace(
            target_representation=polyak(state.target_representation, state.representation.params, c.tau),
            target_critic=polyak(state.target_critic, state.critic.params, c.tau),
        )
        return state, metrics | policy_metrics | {"train/target_mean": jnp.mean(targets)}

    def _as_networks_see(self, state: MuLVState, batch: Batch) -> Batch:
        """Whitened observations; rewards of unit mean square for the decoder, as configured for the critic."""
        c, future = self.config, batch.future
        obs = state.obs_moments.whiten(future.obs) if c.normalise_observations else future.obs
        unit = jnp.sqrt(state.reward_moments.second_moment + 1e-8)
        return batch._replace(
            x_h=whiten(c, state.obs_moments, batch.x_h),
            x_hn=whiten(c, state.obs_moments, batch.x_hn),
            reward=batch.reward / reward_scale(c, state.reward_moments),
            future=future._replace(
                obs=jnp.where(future.mask[..., None], obs, 0.0), rewards=future.rewards / unit
            ),
        )

    def _value(
        self, state: MuLVState, x: Window, temperature: Float[Array, ""], key: PRNGKeyArray
    ) -> Float[Array, "batch"]:
        """V(x) of the present policy under the target networks."""
        target = Model(state.target_representation, state.target_critic)
        if self.spec.discrete:
            policy = self.config.discrete_policy
            return jax.vmap(lambda q: maximise(q, temperature, policy)[0])(self._all_q(target, x))
        noise = jax.random.normal(key, (x.mask.shape[0], self.spec.act_dim))
        a, log_prob = act_on(state.actor.params, x, noise)
        return jnp.min(target.q(x, a), axis=-1) - temperature * log_prob

    def _fit(
        self, state: MuLVState, data: Batch, targets: Float[Array, "batch"], key: PRNGKeyArray
    ) -> tuple[MuLVState, Metrics]:
        """One step on the ELBO and on the critic's squared error; p(z | x_h, a_h) serves both."""
        c, optimiser = self.config, self.optimiser
        noise = latent_noise(c, c.batch_size, key)
        phi_target = jax.vmap(lambda x, a: state.target_representation.p(x, a))
        elsewhere = None if c.critic_trains_representation else phi_target(data.x_h, data.a_h)

        def loss(params: tuple[Representation, Critic]) -> tuple[Array, tuple]:
            representation, critic = params
            p = jax.vmap(representation.p)(data.x_h, data.a_h)
            terms = jax.vmap(lambda *xs: explain(representation, *xs, c.kl_balance))(
                p, data.x_h, data.a_h, data.future, noise
            )
            elbo = jnp.mean(jax.vmap(lambda t: negative_elbo(t, c))(terms))
            phi = jax.vmap(critic.phi)(p if elsewhere is None else elsewhere)
            if c.solver == "ridge":
                critic = critic.with_w(jax.lax.stop_gradient(self._solve(phi, targets)))
            values = jax.vmap(critic.values)(phi)
            critic_loss = jnp.sum(jnp.mean(jnp.square(values - targets[:, None]), axis=0))
            return elbo + critic_loss, (terms, elbo, critic_loss, jnp.mean(values), critic.w)

        (_, aux), (representation_gradient, critic_gradient) = eqx.filter_value_and_grad(loss, has_aux=True)(
            (state.representation.params, state.critic.params)
        )
        terms, elbo, critic_loss, q_mean, w = aux
        representation, representation_norm = descend(optimiser, state.representation, representation_gradient)
        critic, critic_norm = descend(optimiser, state.critic, critic_gradient)
        if c.solver == "ridge":
            critic = critic._replace(params=critic.params.with_w(w))
        return state._replace(representation=representation, critic=critic), {
            "train/elbo": -elbo,
            "train/obs_error": jnp.mean(jnp.sum(terms.obs, axis=-1)),
            "train/reward_error": jnp.mean(jnp.sum(terms.reward, axis=-1)),
            "train/kl": jnp.mean(jnp.sum(terms.kl, axis=-1)),
            "train/critic_loss": critic_loss,
            "train/q_mean": q_mean,
            "train/w_norm": jnp.linalg.norm(w) / w.shape[1] ** 0.5,
            "train/representation_grad_norm": representation_norm,
            "train/critic_grad_norm": critic_norm,
        }

    def _solve(
        self, phi: Float[Array, "batch feature"], targets: Float[Array, "batch"]
    ) -> Float[Array, "feature head"]:
        """Ridge solutions on as many parts of the batch as there are heads, so that the heads differ."""
        phi, targets = (v[: v.shape[0] // HEADS * HEADS].reshape(HEADS, -1, *v.shape[1:]) for v in (phi, targets))
        return jax.vmap(lambda p, t: least_squares(p, t, self.config.ridge), out_axes=1)(phi, targets)

    def _fit_representation(self, state: MuLVState, data: Batch, key: PRNGKeyArray) -> MuLVState:
        """One step on the ELBO alone."""
        c = self.config
        noise = latent_noise(c, c.batch_size, key)

        def loss(representation: Representation) -> Array:
            def one(x_h: Window, a_h: Array, future, noise: Array) -> Array:  # noqa: ANN001
                p: Latent = representation.p(x_h, a_h)
                return negative_elbo(explain(representation, p, x_h, a_h, future, noise, c.kl_balance), c)

            return jnp.mean(jax.vmap(one)(data.x_h, data.a_h, data.future, noise))

        gradient = eqx.filter_grad(loss)(state.representation.params)
        return state._replace(representation=descend(self.optimiser, state.representation, gradient)[0])

    def _improve(
        self, state: MuLVState, x_h: Window, temperature: Float[Array, ""], key: PRNGKeyArray
    ) -> tuple[MuLVState, Metrics]:
        """The actor towards the maximum of Q plus entropy, α towards its target entropy."""
        c, optimiser, model = self.config, self.optimiser, self._model(state)
        if self.spec.discrete:
            q = self._all_q(model, x_h)
            _, probability = jax.vmap(lambda q: maximise(q, temperature, "soft"))(q)
            entropy = -jnp.mean(jnp.sum(probability * jnp.log(probability + 1e-8), axis=-1))
            target_entropy = c.discrete_entropy * jnp.log(self.spec.act_dim)
            log_temperature, _ = descend(optimiser, state.log_temperature, entropy - target_entropy)
            return state._replace(log_temperature=log_temperature), {
                "train/ent_coef": temperature,
                "train/entropy": entropy,
            }
        noise = jax.random.normal(key, (x_h.mask.shape[0], self.spec.act_dim))

        def loss(actor: Actor) -> tuple[Array, Array]:
            a, log_prob = act_on(actor, x_h, noise)
            return jnp.mean(temperature * log_prob - jnp.min(model.q(x_h, a), axis=-1)), jnp.mean(log_prob)

        (actor_loss, log_prob), gradient = eqx.filter_value_and_grad(loss, has_aux=True)(state.actor.params)
        actor, actor_norm = descend(optimiser, state.actor, gradient)
        # d/d(log α) of −log α · (log π + target entropy): α rises while the policy is too certain.
        target_entropy = c.target_entropy_per_action * self.spec.act_dim
        log_temperature, _ = descend(optimiser, state.log_temperature, -(log_prob + target_entropy))
        return state._replace(actor=actor, log_temperature=log_temperature), {
            "train/actor_loss": actor_loss,
            "train/ent_coef": temperature,
            "train/entropy": -log_prob,
            "train/actor_grad_norm": actor_norm,
        }
