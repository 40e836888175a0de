"""What an agent with alpha vectors does: keep a belief, act by the vector that is highest there."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from mulv.tabular.files.alpha import AlphaVectors
from mulv.tabular.pomdp import POMDP
from mulv.tabular.precision import in_float64
from mulv.tabular.simulate import Rows

Carry = tuple[Float[Array, "state"], Int[Array, ""]]  # the belief, and the last action; −1 before the first


class AlphaPolicy(eqx.Module):
    """For `simulate`; the belief goes through the sparse rows, in float64."""

    vectors: Float[Array, "vector state"]
    actions: Int[Array, "vector"]
    start: Float[Array, "state"]
    first: Float[Array, "obs state"] | None  # P(o_0 | s_0)
    transition: Rows
    likelihood: Float[Array, "act obs state"]

    @classmethod
    @in_float64
    def of(cls, pomdp: POMDP, vectors: AlphaVectors) -> "AlphaPolicy":
        """The vectors' policy in their POMDP."""
        first = pomdp.initial_observation
        return cls(
            vectors=jnp.asarray(vectors.values),
            actions=jnp.asarray(vectors.actions.astype(np.int32)),
            start=jnp.asarray(pomdp.start),
            first=None if first is None else jnp.asarray(first.toarray().T),
            transition=Rows.of(pomdp.transition),
            likelihood=jnp.asarray(np.stack([o.toarray().T for o in pomdp.observation])),
        )

    def reset(self) -> Carry:
        return self.start, jnp.int32(-1)

    def act(self, carry: Carry, o_h: Int[Array, ""], key: PRNGKeyArray) -> tuple[Int[Array, ""], Carry]:
        belief, last = carry
        first = belief if self.first is None else belief * self.first[o_h]
        belief = jnp.where(last < 0, first, self._predict(belief, last) * self.likelihood[last, o_h])
        belief = belief / jnp.sum(belief)
        action = self.actions[jnp.argmax(self.vectors @ belief)]
        return action, (belief, action)

    def _predict(self, belief: Float[Array, "state"], a: Int[Array, ""]) -> Float[Array, "state"]:
        """Σ_s b(s) T(s'|s, a)."""
        sums = self.transition.sums[a]
        ended = jnp.isinf(sums)  # where a row is filled up
        weights = jnp.diff(jnp.where(ended, 1.0, sums), axis=1, prepend=0.0)
        return jnp.zeros_like(belief).at[self.transition.places[a]].add(weights * belief[:, None])
