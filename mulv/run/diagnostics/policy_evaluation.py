"""Trains a critic to evaluate a fixed policy from fixed data."""

from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from mulv.agents.base import AbstractAgent
from mulv.core.errors import MulvError, NonFiniteError
from mulv.core.learner import tree_all_finite
from mulv.core.spec import BatchSpec
from mulv.core.types import Batch, Metrics, PyTree, Window
from mulv.data import Replay
from mulv.run import compiled
from mulv.run.compiled import Carry

ROUND = 8  # updates in one compiled call


class EvaluationData:
    """A replay with a task's observations, and a fixed policy's action at each row."""

    def __init__(self, replay: Replay, shown: np.ndarray, policy_actions: np.ndarray):
        """`shown` and `policy_actions` have one row per replay row, lane (environment) after lane."""
        self._replay, self._obs_dim = replay, shown.shape[1]
        rows = np.concatenate([shown, policy_actions], axis=1)
        # `Replay.sample` cuts windows of any vectors: here of an observation with the policy's action at it.
        self._vectors = np.zeros((replay.layout.ring * replay.layout.lanes, rows.shape[1]), np.float32)
        self._vectors[places(replay)] = rows

    def sample(
        self, spec: BatchSpec, batches: int, rng: np.random.Generator
    ) -> tuple[Batch, Float[Array, "batches batch act"]]:
        """Batches of transitions, and the policy's actions at their x_{h+n}."""
        drawn, dim = self._replay.sample(spec, batches, rng, self._vectors), self._obs_dim

        def seen(x: Window) -> Window:
            return x._replace(obs=x.obs[..., :dim])

        batch = drawn._replace(
            x_h=seen(drawn.x_h),
            x_hn=seen(drawn.x_hn),
            future=drawn.future._replace(obs=drawn.future.obs[..., :dim]),
        )
        return batch, drawn.x_hn.obs[..., -1, dim:]


def places(replay: Replay) -> np.ndarray:
    """The positions of the replay's rows, lane after lane, each in the order of writing."""
    if (replay.counts > replay.layout.capacity).any():
        raise MulvError(f"the replay in {replay.directory} has come round: episodes lack their beginnings")
    return replay.written_since(np.zeros_like(replay.counts))


def policy_actions(agent: AbstractAgent, packed: compiled.Packed, replay: Replay) -> np.ndarray:
    """The policy's action without noise at each row of a replay, with its memory of the episode so far."""
    obs = replay.obs_at(places(replay))
    found, begin = [], 0
    for lane, count in enumerate(replay.counts):
        t = np.arange(count)
        first = replay.column("step", lane, t) == 0
        actions = replay.column("action", lane, t)
        found.append(_act_along(agent, packed, obs[begin : begin + count], actions, first))
        begin += count
    return np.concatenate(found)


@partial(jax.jit, static_argnums=0)
def _act_along(
    agent: AbstractAgent,
    packed: compiled.Packed,
    obs: Float[Array, "time obs"],
    past_actions: Float[Array, "time act"],
    first: Bool[Array, "time"],
) -> Float[Array, "time act"]:
    key, step = jax.random.key(0), jnp.int32(0)

    def one(memory: PyTree, row: tuple[Array, Array, Array]) -> tuple[PyTree, Array]:
        o_h, a_prev, first = (part[None] for part in row)
        carry = compiled.act(agent, packed, Carry(memory, a_prev), o_h, first, key, step, deterministic=True)
        return carry.memory, carry.action[0]

    return jax.lax.scan(one, compiled.init_carry(agent, 1).memory, (obs, past_actions, first))[1]


def evaluate_fixed_policy(
    agent: AbstractAgent,
    packed: compiled.Packed,
    data: EvaluationData,
    updates: int,
    rng: np.random.Generator,
    key: PRNGKeyArray,
    report: Callable[[int, compiled.Packed, Metrics], None] = lambda done, packed, metrics: None,
) -> compiled.Packed:
    """The agent's state after `updates` updates of its critic; `report` is called after each round."""
    spec = agent.batch_spec
    if not isinstance(spec, BatchSpec) or agent.encoder is not None:
        raise MulvError(f"{type(agent).__name__} does not learn from windows of vectors")
    done = 0
    while done < updates:
        batches, a_hn = data.sample(spec, min(ROUND, updates - done), rng)
        packed, metrics, finite = _update_critic(agent, packed, batches, a_hn, key, np.int32(done))
        if not finite:
            raise NonFiniteError(f"a loss of the critic is not finite within {done + ROUND} updates")
        done += len(a_hn)
        report(done, packed, metrics)
    return packed


@partial(jax.jit, static_argnums=0, donate_argnums=1)
def _update_critic(
    agent: AbstractAgent,
    packed: compiled.Packed,
    batches: Batch,
    a_hn: Float[Array, "batches batch act"],
    key: PRNGKeyArray,
    first_update: Int[Array, ""],
) -> tuple[compiled.Packed, Metrics, Bool[Array, ""]]:
    """The state after one update per batch, in a single scan; the last metrics; whether all were finite."""

    def body(state: PyTree, xs: tuple[Batch, Array, Array]) -> tuple[PyTree, tuple[Metrics, Array]]:
        batch, a_hn, number = xs
        learned = agent.update_critic(state, batch, a_hn, jax.random.fold_in(key, number))
        if learned is None:
            raise MulvError(f"{type(agent).__name__} has no critic to train")
        state, metrics = learned
        return state, (metrics, tree_all_finite(metrics))

    numbers = first_update + jnp.arange(a_hn.shape[0])
    state, (metrics, finite) = jax.lax.scan(body, compiled.unpack(agent, packed), (batches, a_hn, numbers))
    return compiled.pack(state), jax.tree.map(lambda m: m[-1], metrics), jnp.all(finite)
