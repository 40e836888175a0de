"""Belief filtering (eq. belief): b(s'|τ, a, o) ∝ O(o|a, s') Σ_s b(s|τ) T(s'|s, a).

`update` takes one belief of a POMDP of any size through sparse arrays. `BeliefFilter` takes many beliefs of
a POMDP whose kernels fit in memory, each with an action of its own, compiled.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from mulv.core.errors import MulvError
from mulv.tabular.pomdp import POMDP
from mulv.tabular.precision import in_float64

BLOCK = 256  # beliefs in one product with a transition matrix, at most
LARGEST = 2**27  # numbers in a dense kernel: a gigabyte


def initial(pomdp: POMDP, o_0: int | None = None) -> np.ndarray:
    """b(s_0 | o_0); ρ0 where nothing is seen before the first action."""
    if (pomdp.initial_observation is None) != (o_0 is None):
        raise MulvError("a first observation is given exactly when the POMDP has an initial_observation")
    if pomdp.initial_observation is None:
        return pomdp.start
    return _normalised(pomdp.start * pomdp.initial_observation[:, [o_0]].toarray()[:, 0], "at first")


def predict(pomdp: POMDP, belief: np.ndarray, a: int) -> np.ndarray:
    """Σ_s b(s) T(s'|s, a): where a leads before anything is seen."""
    return np.asarray(belief @ pomdp.transition[a])


def observation_probabilities(pomdp: POMDP, belief: np.ndarray, a: int) -> np.ndarray:
    """P(o | b, a) of every observation."""
    return np.asarray(predict(pomdp, belief, a) @ pomdp.observation[a])


def update(pomdp: POMDP, belief: np.ndarray, a: int, o: int) -> np.ndarray:
    """The belief after a and o; an o that cannot follow is an error."""
    seen = pomdp.observation[a][:, [o]].toarray()[:, 0]
    after = f"after action {pomdp.action_names[a]}"
    return _normalised(predict(pomdp, belief, a) * seen, f"{pomdp.observation_names[o]} {after}")


def _normalised(weights: np.ndarray, what: str) -> np.ndarray:
    total = weights.sum()
    if total <= 0:
        raise MulvError(f"observing {what} is impossible in this belief")
    return weights / total


class BeliefFilter:
    """Many beliefs at once."""

    def __init__(self, pomdp: POMDP):
        numbers = pomdp.actions * pomdp.states * max(pomdp.states, pomdp.observations)
        if numbers > LARGEST:
            raise MulvError(
                f"{pomdp.states} states are too many for dense kernels; update one belief at a time"
            )
        self.pomdp = pomdp
        T, O = pomdp.dense()  # noqa: E741
        with jax.enable_x64(True):
            self._transition = jnp.asarray(T)
            self._likelihood = jnp.asarray(O.transpose(0, 2, 1))  # (A, O, S')

    def initial(self, o_0: np.ndarray | None = None, *, batch: int | None = None) -> np.ndarray:
        """(batch, S) beliefs after each first observation, or `batch` times ρ0 where there is none."""
        if o_0 is None:
            return np.tile(initial(self.pomdp), (batch or 1, 1))
        each = {int(o): initial(self.pomdp, int(o)) for o in np.unique(o_0)}
        return np.stack([each[int(o)] for o in o_0])

    @in_float64
    def update(
        self, belief: np.ndarray | Array, a: np.ndarray | Array, o: np.ndarray | Array
    ) -> tuple[Float[Array, "batch state"], Float[Array, "batch"]]:
        """(batch, S) beliefs after each one's a and o, and P(o | b, a).

        Where that is zero the belief is all zero: there is none.
        """
        self._check(a, o)
        return _update(
            self._transition, self._likelihood, jnp.asarray(belief), jnp.asarray(a), jnp.asarray(o)
        )

    @in_float64
    def along(
        self, belief: np.ndarray | Array, a: np.ndarray | Array, o: np.ndarray | Array
    ) -> tuple[Float[Array, "batch time state"], Float[Array, "batch time"]]:
        """Beliefs after every step of (batch, time) actions and the observations that followed them."""
        self._check(a, o)
        return _along(self._transition, self._likelihood, jnp.asarray(belief), jnp.asarray(a), jnp.asarray(o))

    def _check(self, a: np.ndarray | Array, o: np.ndarray | Array) -> None:
        """JAX takes the last for any index beyond it."""
        for what, index, count in (
            ("action", a, self.pomdp.actions),
            ("observation", o, self.pomdp.observations),
        ):
            values = np.asarray(index)
            if values.size and not 0 <= values.min() <= values.max() < count:
                raise MulvError(f"an {what} from {values.min()} to {values.max()}: there are {count}, from 0")


@jax.jit
def _update(
    transition: Float[Array, "act state next"],
    likelihood: Float[Array, "act obs next"],
    belief: Float[Array, "batch state"],
    a: Int[Array, "batch"],
    o: Int[Array, "batch"],
) -> tuple[Float[Array, "batch next"], Float[Array, "batch"]]:
    joint = _predict(transition, belief, a) * likelihood[a, o]
    probability = jnp.sum(joint, axis=1)
    return joint / jnp.where(probability > 0, probability, 1)[:, None], probability


@jax.jit
def _along(
    transition: Float[Array, "act state next"],
    likelihood: Float[Array, "act obs next"],
    belief: Float[Array, "batch state"],
    a: Int[Array, "batch time"],
    o: Int[Array, "batch time"],
) -> tuple[Float[Array, "batch time state"], Float[Array, "batch time"]]:
    def step(b: Array, ao: tuple[Array, Array]) -> tuple[Array, tuple[Array, Array]]:
        b, probability = _update(transition, likelihood, b, *ao)
        return b, (b, probability)

    _, (beliefs, probabilities) = jax.lax.scan(step, belief, (a.T, o.T))
    return beliefs.swapaxes(0, 1), probabilities.T


@functools.partial(jax.jit, inline=True)
def _predict(
    transition: Float[Array, "act state next"], belief: Float[Array, "batch state"], a: Int[Array, "batch"]
) -> Float[Array, "batch next"]:
    """b @ T[a], row by row.

    A matrix for every row would be read from memory for every row. So rows of one action are laid together
    in blocks of one matrix product each; the last block of an action is filled up with some other row.
    """
    (batch, states), actions = belief.shape, transition.shape[0]
    block = min(BLOCK, max(batch // (8 * actions), 1))  # so small that filling up costs an eighth
    blocks = batch // block + actions
    rows = jnp.bincount(a, length=actions)
    blocks_of = -(-rows // block)
    first_block, first_row = (jnp.cumsum(n) - n for n in (blocks_of, rows))
    order = jnp.argsort(a)
    sorted_a = a[order]
    slot = jnp.zeros_like(order)  # of each row, its place in the blocks
    slot = slot.at[order].set(first_block[sorted_a] * block + jnp.arange(batch) - first_row[sorted_a])
    row = jnp.zeros(blocks * block, order.dtype).at[slot].set(jnp.arange(batch))
    action_of = jnp.searchsorted(jnp.cumsum(blocks_of), jnp.arange(blocks), side="right")
    laid = belief[row].reshape(blocks, block, states)
    product = jax.lax.map(lambda x: x[0] @ transition[x[1]], (laid, jnp.minimum(action_of, actions - 1)))
    return product.reshape(blocks * block, states)[slot]
