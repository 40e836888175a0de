"""What the tests of agents share: random batches, updates on them, and when two states are equal."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import PRNGKeyArray

from mulv.agents.base import AbstractAgent
from mulv.core.types import Batch, Future, PyTree, Window
from mulv.run import compiled

KEY = jax.random.key(0)


def random_batches(agent: AbstractAgent, batches: int, seed: int = 0) -> Batch:
    """Like a replay's: some windows begin early, some futures end early, some episodes terminate."""
    rng, spec = np.random.default_rng(seed), agent.batch_spec
    lead = (batches, spec.batch_size)

    def normal(*shape: int) -> np.ndarray:
        return rng.normal(size=lead + shape).astype(np.float32)

    def window() -> Window:
        mask = np.sort(rng.random((*lead, spec.window)) < 0.7, axis=-1)
        mask[..., -1] = True
        actions = np.tanh(normal(spec.window - 1, 2)) * mask[..., :-1, None]
        return Window((2.0 + normal(spec.window, 3)) * mask[..., None], actions, mask)

    reward = 5.0 * normal(spec.future)
    future_mask = -np.sort(-(rng.random((*lead, spec.future)) < 0.8).astype(int), axis=-1) > 0
    future_mask[..., 0] = True
    actions = np.tanh(normal(spec.future, 2))
    future = Future(
        actions * future_mask[..., None],
        reward * future_mask,
        normal(spec.future, 3) * future_mask[..., None],
        future_mask,
    )
    discount = np.where(rng.random(lead) < 0.3, 0.0, spec.gamma).astype(np.float32)
    size = np.full(lead, 1000, np.float32)
    return Batch(window(), actions[..., 0, :], reward[..., 0], discount, window(), future, size)


def initial(agent: AbstractAgent, key: PRNGKeyArray) -> PyTree:
    """Drawn layer by layer: layers of one shape are compiled once for all agents, a whole state for each."""
    return agent.init(key)


def run(agent: AbstractAgent, state: PyTree, batches: Batch, key=KEY, first: int = 0):
    """Updates on a copy, because the compiled ones take their state's memory."""
    packed, metrics, finite = compiled.update(
        agent, compiled.pack(jax.tree.map(jnp.copy, state)), batches, key, jnp.int32(first)
    )
    return compiled.unpack(agent, packed), metrics, bool(finite.all())


def leaves(tree: PyTree) -> list[np.ndarray]:
    return [np.asarray(leaf) for leaf in jax.tree.leaves(eqx.filter(tree, eqx.is_array))]


def same(a: PyTree, b: PyTree) -> bool:
    return all(np.array_equal(x, y) for x, y in zip(leaves(a), leaves(b), strict=True))


def assert_the_return_is_found(agent: AbstractAgent, rounds: int, updates: int) -> None:
    """With discount 0 the critic's fixed point is the n-step return, whatever the target network says."""
    batch = random_batches(agent, 1)
    batch = batch._replace(reward=np.ones_like(batch.reward), discount=np.zeros_like(batch.discount))
    repeated = jax.tree.map(lambda leaf: np.repeat(leaf, updates, axis=0), batch)
    state = initial(agent, KEY)
    for round_ in range(rounds):
        state, metrics, finite = run(agent, state, repeated, first=round_ * updates)
        assert finite
    assert metrics["train/q_mean"] == pytest.approx(1.0, abs=0.05)
