"""Learning curves of many seeds at once, with the exact value of the policy after every round."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from mulv.core.errors import MulvError
from mulv.tabular.learner.algorithms import Settings, begin_online, online_round
from mulv.tabular.learner.planning import optimal_value
from mulv.tabular.learner.q_learning import QLearning, begin_q_learning, q_learning_round
from mulv.tabular.learner.tables import WindowTables
from mulv.tabular.precision import in_float64

CHUNK = 25  # rounds in one compiled call: between two of them a person is told


class LearnerSettings(NamedTuple):
    """A learner: what it begins with, a round of H episodes, and what it is given."""

    begin: Callable[[WindowTables], Any]
    round: Callable[[WindowTables, Any, Any, Array], tuple[Any, Array]]
    settings: Any


@dataclass(frozen=True, eq=False)
class Curve:
    """V^{π_k} of one method, k = 1, …, K, and the best value there is."""

    method: str
    horizon: int
    optimum: float
    values: np.ndarray  # (seeds, K)

    @property
    def regret(self) -> np.ndarray:
        """(seeds, K): Σ_{i≤k} V* − V^{π_i}."""
        return np.cumsum(self.optimum - self.values, axis=1)

    def episodes_to(self, share: float = 0.5) -> np.ndarray:
        """(seeds,): the episodes after which π_k was first worth that share of V*; infinite if never."""
        reached = self.values >= share * self.optimum
        return np.where(reached.any(axis=1), (reached.argmax(axis=1) + 1.0) * self.horizon, np.inf)


def methods(alpha: float) -> dict[str, LearnerSettings]:
    """Algorithm 1, the same without its bonus, and ε-greedy Q-learning."""
    if not alpha > 0:
        raise MulvError(
            f"alpha is {alpha}; the bonus needs a positive one (no-bonus is run beside it anyway)"
        )
    return {
        "bonus": LearnerSettings(begin_online, online_round, Settings(alpha=alpha)),
        "no-bonus": LearnerSettings(begin_online, online_round, Settings(alpha=0.0)),
        "q-learning": LearnerSettings(begin_q_learning, q_learning_round, QLearning()),
    }


@in_float64
def learn(
    tables: WindowTables,
    name: str,
    method: LearnerSettings,
    *,
    rounds: int,
    seeds: int,
    tick: Callable[[int], None] = lambda _: None,
) -> Curve:
    """So many rounds of H episodes, for seeds 0, 1, … at once; `tick` is told now and then how many are done.

    A seed's curve depends neither on how many others there are nor on how long it is.
    """
    if rounds < 1 or seeds < 1:
        raise MulvError(f"{rounds} rounds of {seeds} seeds: both need one")
    keys = jnp.stack([jax.random.key(seed) for seed in range(seeds)])
    state = jax.tree.map(lambda x: jnp.broadcast_to(x, (seeds, *x.shape)), method.begin(tables))
    values = []
    for first in range(0, rounds, CHUNK):
        state, value = _chunk(method.round, tables, method.settings, state, keys, jnp.int32(first))
        values.append(np.asarray(value))
        tick(min(CHUNK, rounds - first))
    return Curve(name, tables.horizon, optimal_value(tables), np.concatenate(values, axis=1)[:, :rounds])


@eqx.filter_jit
def _chunk(
    round_: Callable[[WindowTables, Any, Any, Array], tuple[Any, Array]],
    tables: WindowTables,
    settings: Any,
    states: Any,
    keys: Array,
    first: Array,
) -> tuple[Any, Array]:
    """CHUNK rounds of every seed, from round `first` on."""

    def one(state: Any, key: Array) -> tuple[Any, Array]:
        def step(state: Any, k: Array) -> tuple[Any, Array]:
            return round_(tables, settings, state, jax.random.fold_in(key, k))

        return jax.lax.scan(step, state, first + jnp.arange(CHUNK))

    return jax.vmap(one)(states, keys)
