"""What the tests of agents share: tiny ones, batches as a replay gives them, and updates of either."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import PRNGKeyArray

from mulv.agents import ALGORITHMS
from mulv.agents.base import AbstractAgent
from mulv.core.learner import Trained
from mulv.core.options import with_options
from mulv.core.spec import EnvSpec
from mulv.core.types import Batch, Future, PyTree, Window
from mulv.nets.trunk import TrunkConfig
from mulv.run import compiled

KEY = jax.random.key(0)
VECTORS, FRAMES = EnvSpec((3,), 2), EnvSpec((16, 16, 3), 2, obs_dtype="uint8")
SMALL: dict[str, dict] = {
    "mulv": {"latent.dim": 8, "critic.features": 32, "tau": 0.25},
    "sac": {"tau": 0.25},
    "drqv2": {"tau": 0.25, "channels": 8, "feature_dim": 8, "halvings": 1},
    "bc": {},
}
SEE_FRAMES = ("drqv2",)


def tiny(name: str, **changes) -> AbstractAgent:
    algo = ALGORITHMS[name]
    config = algo.config(window=2, batch_size=8, learning_rate=1e-2, trunk=TrunkConfig("mlp", 16, 2))
    config = with_options(config, SMALL[name] | changes)
    return algo.agent(config, FRAMES if name in SEE_FRAMES else VECTORS)


def observations(spec: EnvSpec, rng: np.random.Generator, *lead: int) -> np.ndarray:
    shape = (*lead, *spec.obs_shape)
    if spec.obs_dtype == "uint8":
        return rng.integers(0, 256, shape, np.uint8)
    return (2.0 + rng.normal(size=shape)).astype(np.float32)


def random_batches(agent: AbstractAgent, batches: int, seed: int = 0) -> Batch:
    """Like a replay's: some windows begin early, some futures end early, some episodes terminate."""
    rng, env, spec = np.random.default_rng(seed), agent.spec, agent.batch_spec
    lead = (batches, spec.batch_size)
    shown = EnvSpec((agent.encoder.dim,), env.act_dim) if agent.encoder else env

    def seen(mask: np.ndarray) -> np.ndarray:
        obs = observations(shown, rng, *mask.shape)
        obs[~mask] = 0
        return obs

    def normal(*shape: int) -> np.ndarray:
        return rng.normal(size=lead + shape).astype(np.float32)

    def window() -> Window:
        mask = np.sort(rng.random((*lead, spec.window)) < 0.7, axis=-1)
        mask[..., -1] = True
        actions = np.tanh(normal(spec.window - 1, env.act_dim)) * mask[..., :-1, None]
        rewards = 5.0 * np.random.default_rng(seed).normal(size=mask.shape).astype(np.float32)
        return Window(seen(mask), actions, mask, rewards * mask)

    reward = 5.0 * normal(spec.future)
    mask = -np.sort(-(rng.random((*lead, spec.future)) < 0.8).astype(int), axis=-1) > 0
    mask[..., 0] = True
    actions = np.tanh(normal(spec.future, env.act_dim))
    discount = np.where(rng.random(lead) < 0.3, 0.0, spec.gamma).astype(np.float32)
    terminated = np.zeros_like(mask)
    terminated[..., 0] = discount == 0
    future = Future(actions * mask[..., None], reward * mask, seen(mask), mask, terminated)
    size = np.full(lead, 1000, np.float32)
    frames = observations(env, rng, batches, spec.frames) if spec.frames else None
    return Batch(window(), actions[..., 0, :], reward[..., 0], discount, window(), future, size, frames)


def initial(agent: AbstractAgent, key: PRNGKeyArray) -> PyTree:
    """Drawn layer by layer: layers of one shape are compiled once for all agents, a whole state for each."""
    return agent.init(key)


def run(agent: AbstractAgent, state: PyTree, batches: Batch, key=KEY, first: int = 0):
    """Updates on a copy, because the compiled ones take their state's memory."""
    packed, metrics, finite = compiled.update(
        agent, compiled.pack(jax.tree.map(jnp.copy, state)), batches, key, jnp.int32(first)
    )
    return compiled.unpack(agent, packed), metrics, bool(finite.all())


def trained_parts(state: PyTree) -> dict[str, PyTree]:
    return {name: part.params for name, part in state._asdict().items() if isinstance(part, Trained)}


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
