"""The bonus of Algorithm 1, the penalty of Algorithm 2: what the data says little of is worth more, or less.

And what rewards alone are worth, so that the two are seen apart.

See docs/algorithms/exploration.md.
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
    """What is learned for the bonus."""

    ellipsoid: Ellipsoid
    measure: Float[Array, "feature direction"]  # ‖φ measure‖ is ‖φ‖_{Σ⁻¹}
    rows: Float[Array, "row feature"]  # φ of some rows of each update since Σ was rebuilt
    age: Int[Array, ""]  # updates since then
    rewards_alone: Trained  # weights of a critic on the same φ that no bonus reaches
    target_rewards_alone: Float[Array, "feature head"]

    def alone(self, critic: LinearCritic) -> LinearCritic:
        """The critic that sees rewards alone, on the φ of `critic`."""
        return _with_weights(critic, self.rewards_alone.params)


@dataclass(frozen=True)
class Bonus:
    """b̂ as an agent's part. Its state is None where the configuration says there is none."""

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
        """b̂(x, a); zero until Σ has seen data."""
        b, data = self._options, optimism.ellipsoid.count
        scale = b.scale * (1.0 if b.half_life is None else 0.5 ** (data / b.half_life))
        return jnp.where(data > 0, bonus(phi @ optimism.measure, scale, b.form, b.limit), 0.0)

    @property
    def weight(self) -> float:
        """Of b̂ in Q: where backups are of n steps, that of the first stands for each, to know the others
        would cost as many passes through the networks. Negative where it is a penalty.
        """
        c = self.config
        steps = sum(c.gamma**i for i in range(c.n_step))
        return steps if self._options.use == "optimism" else -steps

    def added(self, optimism: Optimism | None) -> Added | None:
        """What is added to ⟨φ, w⟩ at any (x, a), in the data or not: b̂, or −b̂ where it is a penalty."""
        return None if optimism is None else lambda phi: self.weight * self.of(optimism, phi)

    def backups(
        self,
        optimism: Optimism | None,
        critic: LinearCritic,
        backup: Callable[[LinearCritic, Added | None], Targets],
    ) -> tuple[Targets, Targets | None]:
        """The backup of r + b̂ under a critic, and of r under that of rewards alone, from one φ."""
        if optimism is None:
            return backup(critic, None), None

        def under(weights: Array, share: Array) -> Targets:
            return backup(_with_weights(critic, weights), lambda phi: share * self.of(optimism, phi))

        weights = jnp.stack([critic.weights, optimism.target_rewards_alone])
        targets, alone = jax.vmap(under)(weights, jnp.array([self.weight, 0.0]))
        return targets, alone

    def sees_rewards_alone(self, explores: bool) -> bool:
        """Whether actions are chosen by rewards alone. A penalty is for good."""
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
        """Σ with this update's φ; and a step of the critic of rewards alone, towards its targets `alone`."""
        b = self._options

        def loss(weights: Array) -> tuple[Array, Array]:
            values = jax.vmap(_with_weights(critic, weights).values)(phi)
            return jnp.sum(jnp.mean(jnp.square(values - alone[:, None]), axis=0)), jnp.mean(values)

        gradient, value = jax.grad(loss, has_aux=True)(optimism.rewards_alone.params)
        rewards_alone, _ = descend(optimiser, optimism.rewards_alone, gradient)
        # A batch is drawn at random, so its first rows are.
        rows = jax.lax.dynamic_update_slice_in_dim(
            optimism.rows, phi[: b.rows], optimism.age * b.rows, axis=0
        )
        age = optimism.age + 1
        due = age == b.rebuild

        def rebuilt(now: tuple[Ellipsoid, Array, Array]) -> tuple[Ellipsoid, Array, Array]:
            ellipsoid = now[0].rebuilt(rows, data_size[0], b.memory)
            return ellipsoid, ellipsoid.measure(b.directions), jnp.zeros_like(due)

        # A loop of one turn or none, not a conditional: what is not due is not copied either, and several
        # seeds under one vmap rebuild when theirs are due, where a conditional would in every update.
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
