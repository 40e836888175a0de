"""Episodes of a POMDP, many at once, drawn from its sparse rows exactly."""

from typing import Any, NamedTuple, Protocol

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray
from scipy.sparse import csr_array

from mulv.core.errors import MulvError
from mulv.tabular.pomdp import POMDP
from mulv.tabular.precision import in_float64

NO_OBSERVATION = -1  # the first "observation" where nothing is seen before the first action


class Policy(Protocol):
    """What decides, for one episode; a pytree. It remembers in a carry of its own."""

    def reset(self) -> Any:
        """The carry before an episode."""

    def act(self, carry: Any, o_h: Int[Array, ""], key: PRNGKeyArray) -> tuple[Int[Array, ""], Any]:
        """a_h, and the carry for the next step."""


class UniformPolicy(eqx.Module):
    """Every action alike."""

    actions: int = eqx.field(static=True)

    def reset(self) -> None:
        return None

    def act(self, carry: None, o_h: Int[Array, ""], key: PRNGKeyArray) -> tuple[Int[Array, ""], None]:
        return jax.random.randint(key, (), 0, self.actions), None


class ReactivePolicy(eqx.Module):
    """π(a | o): looks at the newest observation only; the last row is for having seen nothing."""

    probabilities: Float[Array, "obs act"]

    def reset(self) -> None:
        return None

    def act(self, carry: None, o_h: Int[Array, ""], key: PRNGKeyArray) -> tuple[Int[Array, ""], None]:
        return jax.random.choice(key, self.probabilities.shape[1], p=self.probabilities[o_h]), None


class Episodes(NamedTuple):
    """NumPy arrays; `observations[:, h]` is o_h, seen before `actions[:, h]`."""

    states: np.ndarray  # (episodes, H + 1)
    observations: np.ndarray  # (episodes, H + 1)
    actions: np.ndarray  # (episodes, H)
    rewards: np.ndarray  # (episodes, H): r(a_h, s_h)

    def returns(self, discount: float) -> np.ndarray:
        """Σ_h γ^h r_h of every episode."""
        return self.rewards @ discount ** np.arange(self.rewards.shape[1])


class Rows(NamedTuple):
    """Sparse rows as tables of their non-zero places and running sums, filled up on the right."""

    places: Int[Array, "*index width"]
    sums: Float[Array, "*index width"]  # infinite where filled up

    @classmethod
    def of(cls, matrices: tuple[csr_array, ...]) -> "Rows":
        """The rows of several matrices of one shape; indexed by matrix, then row."""
        width = max(int(np.diff(m.indptr).max()) for m in matrices)
        places = np.zeros((len(matrices), matrices[0].shape[0], width), np.int32)
        sums = np.full(places.shape, np.inf)
        for i, m in enumerate(matrices):
            counts = np.diff(m.indptr)
            inside = np.arange(width) < counts[:, None]
            weights = np.zeros(inside.shape)
            places[i][inside], weights[inside] = m.indices, m.data
            running = np.cumsum(weights, axis=1)
            # A sum that rounding left below one would let the last place overflow: rows are rescaled.
            sums[i][inside] = (running / running[:, -1:])[inside]
        return cls(jnp.asarray(places), jnp.asarray(sums))

    def draw(self, index: tuple[Array, ...], key: PRNGKeyArray) -> Int[Array, ""]:
        """One place of the row at `index`, by its probability."""
        u = jax.random.uniform(key, dtype=self.sums.dtype)
        return self.places[index][jnp.sum(self.sums[index] <= u)]


class _Tables(NamedTuple):
    start: Rows
    first: Rows | None
    transition: Rows
    observation: Rows
    reward: Float[Array, "act state"]


@in_float64
def simulate(
    pomdp: POMDP, policy: Policy, *, episodes: int, key: PRNGKeyArray, horizon: int | None = None
) -> Episodes:
    """So many independent episodes of `horizon` decisions (the POMDP's own unless given).

    A terminal state keeps an episode to the end, where it earns nothing.
    """
    steps = horizon or pomdp.horizon
    if steps is None:
        raise MulvError("this POMDP has no horizon of its own; say how many decisions to simulate")
    first = pomdp.initial_observation
    tables = _Tables(
        start=Rows.of((csr_array(pomdp.start[None]),)),
        first=None if first is None else Rows.of((first,)),
        transition=Rows.of(pomdp.transition),
        observation=Rows.of(pomdp.observation),
        reward=jnp.asarray(pomdp.reward),
    )
    return Episodes(*map(np.asarray, _episodes(tables, policy, jax.random.split(key, episodes), steps)))


@eqx.filter_jit
def _episodes(tables: _Tables, policy: Policy, keys: Array, steps: int) -> tuple[Array, Array, Array, Array]:
    zero = jnp.zeros((), jnp.int32)

    def episode(key: Array) -> tuple[Array, Array, Array, Array]:
        start_key, first_key, step_key = jax.random.split(key, 3)
        s_0 = tables.start.draw((zero, zero), start_key)
        o_0 = jnp.int32(NO_OBSERVATION) if tables.first is None else tables.first.draw((zero, s_0), first_key)

        def step(carry: tuple[Array, Array, Any], key: Array) -> tuple[Any, tuple[Array, ...]]:
            s_h, o_h, memory = carry
            act_key, state_key, obs_key = jax.random.split(key, 3)
            a_h, memory = policy.act(memory, o_h, act_key)
            s_h1 = tables.transition.draw((a_h, s_h), state_key)
            o_h1 = tables.observation.draw((a_h, s_h1), obs_key)
            return (s_h1, o_h1, memory), (s_h1, o_h1, a_h, tables.reward[a_h, s_h])

        carry = (s_0, o_0, policy.reset())
        _, (s, o, a, r) = jax.lax.scan(step, carry, jax.random.split(step_key, steps))
        return jnp.append(s_0, s), jnp.append(o_0, o), a, r

    return jax.vmap(episode)(keys)
