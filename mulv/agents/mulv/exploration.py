"""The bonus of Algorithm 1 and the penalty of Algorithm 2, for state-actions that the data covers little.

Also a second critic that is trained on rewards only, without the bonus. See docs/algorithms/exploration.md.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int

from mulv.agents.mulv.config import MuLVConfig
from mulv.agents.mulv.critic import Added, LinearCritic
from mulv.agents.mulv.groups import BonusConfig
from mulv.core.elliptical import Ellipsoid, bonus
from mulv.core.learner import Trained, descend, polyak, start_training
from mulv.core.types import Metrics

Phi = Float[Array, "batch feature"]
Targets = Float[Array, "batch"]


class Optimism(NamedTuple):
    """The state of the bonus."""

    ellipsoid: Ellipsoid
    measure: Float[Array, "feature direction"]  # ‖φ measure‖ is ‖φ‖_{Σ⁻¹}
    rows: Float[Array, "row feature"]  # φ of some rows of each update since Σ was last rebuilt
    age: Int[Array, ""]  # updates since Σ was last rebuilt
    rewards_alone: Trained  # weights of a critic on the same φ, trained without bonus
    target_rewards_alone: Float[Array, "feature head"]

    def alone(self, critic: LinearCritic) -> LinearCritic:
        """The critic trained on rewards only, with the φ of `critic`."""
        return _with_weights(critic, self.rewards_alone.params)


@dataclass(frozen=True)
class Bonus:
    """The bonus b̂. Its state is None if the configuration has no bonus."""

    config: MuLVConfig

    def init(self, critic: LinearCritic, optimiser: optax.GradientTransformation) -> Optimism | None:
        b = self.config.bonus
        if b is None:
            return None
        features = critic.weights.shape[0] * len(critic.embeddings)
        ellipsoid = Ellipsoid(features, b.regularisation)
        return Optimism(
            ellipsoid,
            measure=jnp.copy(ellipsoid.measure(b.directions)),
            rows=jnp.zeros((b.rebuild * b.rows, features)),
            age=jnp.zeros((), jnp.int32),
            rewards_alone=start_training(optimiser, jnp.copy(critic.weights)),
            target_rewards_alone=jnp.copy(critic.weights),
        )

    @property
    def _options(self) -> BonusConfig:
        assert self.config.bonus is not None
        return self.config.bonus

    def of(self, optimism: Optimism, phi: Phi) -> Targets:
        """b̂(x, a); zero until Σ contains data."""
        b, data = self._options, optimism.ellipsoid.count
        scale = b.scale * (1.0 if b.half_life is None else 0.5 ** (data / b.half_life))
        return jnp.where(data > 0, bonus(phi @ optimism.measure, scale, b.form, b.limit), 0.0)

    @property
    def weight(self) -> float:
        """The factor of b̂ in Q; negative for a penalty.

        In n-step targets b̂ of the first step is used for all n, because each of the others would cost
        another pass through the networks.
        """
        c = self.config
        steps = sum(c.discount**i for i in range(c.n_step))
        return steps if self._options.use == "optimism" else -steps

    def added(self, optimism: Optimism | None) -> Added | None:
        """The function of φ that is added to ⟨φ, w⟩ at any (x, a), b̂ times `weight`; None without bonus."""
        return None if optimism is None else lambda phi: self.weight * self.of(optimism, phi)

    def backups(
        self,
        optimism: Optimism | None,
        critic: LinearCritic,
        backup: Callable[[LinearCritic, Added | None], Targets],
    ) -> tuple[Targets, Targets | None]:
        """Targets with bonus, and those of the critic of rewards only (None without a bonus), from one φ."""
        if optimism is None:
            return backup(critic, None), None

        def under(weights: Array, share: Array) -> Targets:
            return backup(_with_weights(critic, weights), lambda phi: share * self.of(optimism, phi))

        weights = jnp.stack([critic.weights, optimism.target_rewards_alone])
        targets, alone = jax.vmap(under)(weights, jnp.array([self.weight, 0.0]))
        return targets, alone

    def sees_rewards_alone(self, explores: bool) -> bool:
        """Whether actions are chosen by rewards only: without exploration, unless the bonus is a penalty."""
        return self._options.use == "optimism" and not explores

    def learn(
        self,
        optimism: Optimism,
        optimiser: optax.GradientTransformation,
        critic: LinearCritic,
        phi: Phi,
        alone: Targets,
        data_size: Float[Array, "batch"],
    ) -> tuple[Optimism, Metrics]:
        """Add this update's φ to Σ, and take a step of the critic of rewards only, towards `alone`."""
        b = self._options

        def loss(weights: Array) -> tuple[Array, Array]:
            values = jax.vmap(_with_weights(critic, weights).values)(phi)
            return jnp.sum(jnp.mean(jnp.square(values - alone[:, None]), axis=0)), jnp.mean(values)

        gradient, value = jax.grad(loss, has_aux=True)(optimism.rewards_alone.params)
        rewards_alone, _ = descend(optimiser, optimism.rewards_alone, gradient)
        # The batch is drawn at random, so its first rows are a random sample.
        rows = jax.lax.dynamic_update_slice_in_dim(
            optimism.rows, phi[: b.rows], optimism.age * b.rows, axis=0
        )
        age = optimism.age + 1
        due = age == b.rebuild

        def rebuilt(now: tuple[Ellipsoid, Array, Array]) -> tuple[Ellipsoid, Array, Array]:
            ellipsoid = now[0].rebuilt(rows, data_size[0], b.memory)
            return ellipsoid, ellipsoid.measure(b.directions), jnp.zeros_like(due)

        # A while loop of at most one iteration, not `lax.cond`: without a rebuild nothing is copied, and
        # under vmap over seeds `cond` would rebuild in every update.
        now = (optimism.ellipsoid, optimism.measure, due)
        ellipsoid, measure, _ = jax.lax.while_loop(lambda now: now[2], rebuilt, now)
        target = polyak(optimism.target_rewards_alone, rewards_alone.params, self.config.tau)
        found = self.of(optimism, phi[: b.rows])
        metrics = {
            "train/bonus_mean": jnp.mean(found),
            "train/bonus_max": jnp.max(found),
            "train/value_of_rewards": value,
        }
        age = jnp.where(due, 0, age)
        return Optimism(ellipsoid, measure, rows, age, rewards_alone, target), metrics


def _with_weights(critic: LinearCritic, weights: Float[Array, "feature head"]) -> LinearCritic:
    return eqx.tree_at(lambda c: c.weights, critic, weights)
