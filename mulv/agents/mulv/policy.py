"""Policies from Q(x, ·): a learned actor for continuous actions, the exact maximum for discrete ones."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, PRNGKeyArray

from mulv.agents.mulv.config import MuLVConfig
from mulv.agents.mulv.groups import GreedyPolicy, SACPolicy, SoftPolicy
from mulv.agents.mulv.reader import seen_window_dim
from mulv.core.learner import Trained, descend
from mulv.core.spec import EnvSpec
from mulv.core.types import Metrics
from mulv.nets.policy import Actor, act_on

QFunction = Callable[[Float[Array, "batch act"]], Float[Array, "batch head"]]  # a ↦ Q(x, a), at a batch of x
Codes = Float[Array, "batch width"]  # the actor's input: codes u of a batch of windows, these beside them
Temperature = Float[Array, ""]


def believed(config: MuLVConfig, values: Float[Array, "batch head"]) -> Float[Array, "batch"]:
    """The Q value that targets and policies use: minimum or mean of the critic's heads."""
    return jnp.min(values, axis=-1) if config.double_q == "lower" else jnp.mean(values, axis=-1)


@dataclass(frozen=True)
class AbstractEntropyPolicy(ABC):
    """A policy with an entropy bonus, whose weight (temperature) is tuned."""

    config: MuLVConfig
    spec: EnvSpec

    @property
    @abstractmethod
    def initial_temperature(self) -> float:
        """The temperature before the first update."""

    @property
    @abstractmethod
    def target_entropy(self) -> float:
        """The entropy that tuning the temperature aims for."""

    def update_temperature(
        self,
        log_temperature: Trained,
        optimiser: optax.GradientTransformation,
        entropy: Float[Array, ""],
        data_size: Float[Array, ""],
    ) -> Trained:
        """The temperature after one step: it rises while the entropy is below its target."""
        # d/d(log T) of log T · (entropy − its target)
        return descend(optimiser, log_temperature, entropy - self.target_entropy)[0]


@dataclass(frozen=True)
class ContinuousPolicy(AbstractEntropyPolicy):
    """Soft actor-critic: a tanh-Gaussian actor, trained towards high Q and entropy.

    Its input is the window's code u under the target encoder, which changes slowly, and perhaps the window.
    """

    def init(self, key: PRNGKeyArray) -> Actor:
        trunk = self.config.trunk
        beside = seen_window_dim(self.spec, self.config) if self.config.policy_reads_window else 0
        return Actor(trunk.width + beside, self.spec.act_dim, replace(trunk, depth=1), key=key)

    @property
    def _options(self) -> SACPolicy:
        assert isinstance(self.config.policy, SACPolicy)
        return self.config.policy

    @property
    def initial_temperature(self) -> float:
        return self._options.initial_temperature

    @property
    def target_entropy(self) -> float:
        return self._options.target_entropy_per_action * self.spec.act_dim

    def act(
        self,
        actor: Actor,
        q: QFunction,
        u: Float[Array, "width"],
        temperature: Temperature,
        noise: Float[Array, "act"] | None,
    ) -> Float[Array, "act"]:
        """The action at one window."""
        return actor(u).at(noise)

    def value(
        self, actor: Actor, q: QFunction, u: Codes, temperature: Temperature, key: PRNGKeyArray
    ) -> Float[Array, "batch"]:
        """V(x) of the present policy, with its entropy."""
        a, log_prob = act_on(actor, u, self._noise(u, key))
        return believed(self.config, q(a)) - temperature * log_prob

    def improve(
        self,
        trained: Trained,
        optimiser: optax.GradientTransformation,
        q: QFunction,
        u: Codes,
        temperature: Temperature,
        key: PRNGKeyArray,
    ) -> tuple[Trained, Float[Array, ""], Metrics]:
        """The actor after one step, its entropy, and metrics."""
        noise = self._noise(u, key)

        def actor_loss(actor: Actor) -> tuple[Array, Array]:
            a, log_prob = act_on(actor, u, noise)
            return jnp.mean(temperature * log_prob - believed(self.config, q(a))), -jnp.mean(log_prob)

        (loss, entropy), gradient = eqx.filter_value_and_grad(actor_loss, has_aux=True)(trained.params)
        trained, norm = descend(optimiser, trained, gradient)
        metrics = {"train/actor_loss": loss, "train/actor_grad_norm": norm}
        return trained, entropy, metrics | entropy_metrics(temperature, entropy)

    def _noise(self, u: Codes, key: PRNGKeyArray) -> Float[Array, "batch act"]:
        return jax.random.normal(key, (len(u), self.spec.act_dim))


@dataclass(frozen=True)
class DiscretePolicy(AbstractEntropyPolicy):
    """No actor: Q of every action is computed, so the maximum, hard or soft, is exact."""

    def init(self, key: PRNGKeyArray) -> tuple[()]:
        return ()

    @property
    def initial_temperature(self) -> float:
        options = self.config.discrete_policy
        return options.initial_temperature if isinstance(options, SoftPolicy) else 1.0

    @property
    def target_entropy(self) -> float:
        options = self.config.discrete_policy
        share = options.entropy_share if isinstance(options, SoftPolicy) else 0.0
        return share * math.log(self.spec.act_dim)

    def act(
        self,
        actor: tuple[()],
        q: QFunction,
        u: Float[Array, "width"],
        temperature: Temperature,
        noise: Float[Array, "act"] | None,
    ) -> Float[Array, "act"]:
        """The action at one window, as a one-hot vector."""
        values = self._lower_q(q, 1)[0]
        options = self.config.discrete_policy
        _, probability = maximise(values, temperature, options.kind)
        if isinstance(options, GreedyPolicy):
            rate = options.exploration_rate
            probability = (1 - rate) * probability + rate / self.spec.act_dim
        if noise is None:
            return jax.nn.one_hot(jnp.argmax(values), self.spec.act_dim)
        gumbel = -jnp.log(-jax.scipy.stats.norm.logcdf(noise))
        return jax.nn.one_hot(jnp.argmax(jnp.log(probability) + gumbel), self.spec.act_dim)

    def value(
        self, actor: tuple[()], q: QFunction, u: Codes, temperature: Temperature, key: PRNGKeyArray
    ) -> Float[Array, "batch"]:
        """max_a Q(x, a), hard or soft."""
        kind = self.config.discrete_policy.kind
        return jax.vmap(lambda values: maximise(values, temperature, kind)[0])(self._lower_q(q, len(u)))

    def improve(
        self,
        trained: Trained,
        optimiser: optax.GradientTransformation,
        q: QFunction,
        u: Codes,
        temperature: Temperature,
        key: PRNGKeyArray,
    ) -> tuple[Trained, Float[Array, ""], Metrics]:
        """The actor unchanged, the entropy of the soft policy, and metrics: there is nothing to train."""
        if isinstance(self.config.discrete_policy, GreedyPolicy):
            return trained, jnp.zeros(()), {}
        _, probability = jax.vmap(lambda values: maximise(values, temperature, "soft"))(
            self._lower_q(q, len(u))
        )
        entropy = -jnp.mean(jnp.sum(jax.scipy.special.xlogy(probability, probability), axis=-1))
        return trained, entropy, entropy_metrics(temperature, entropy)

    def _lower_q(self, q: QFunction, batch: int) -> Float[Array, "batch act"]:
        """Q of every action, as `believed` combines the heads."""
        actions = self.spec.act_dim

        def of(action: Float[Array, "act"]) -> Float[Array, "batch"]:
            return believed(self.config, q(jnp.broadcast_to(action, (batch, actions))))

        return jax.vmap(of, out_axes=1)(jnp.eye(actions))


def entropy_metrics(temperature: Temperature, entropy: Float[Array, ""]) -> Metrics:
    """Metrics of a policy with entropy."""
    return {"train/ent_coef": temperature, "train/entropy": entropy}


def maximise(
    q: Float[Array, "act"], temperature: Temperature, kind: str
) -> tuple[Float[Array, ""], Float[Array, "act"]]:
    """The maximum of Q over actions, hard or soft, and the policy's probability of each action."""
    if kind == "greedy":
        return jnp.max(q), jax.nn.one_hot(jnp.argmax(q), q.shape[-1])
    return temperature * jax.nn.logsumexp(q / temperature), jax.nn.softmax(q / temperature)
