"""The jitted functions of a run. Equal agents share compiled code, because the agent is a static argument.

Between calls a state is packed: a plain tuple of its arrays. JAX flattens a tuple in C++, but an Equinox
module in Python, which is slow for the many modules of a state and its optimisers. The axis `lane` is the
index of an environment in the vector environment.
"""

from functools import cache, partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.custom_batching import sequential_vmap
from jax.extend.random import define_prng_impl, rbg_prng_impl
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, UInt8

from mulv.agents.base import AbstractAgent
from mulv.agents.encoder import ObservationEncoder
from mulv.core.learner import tree_all_finite
from mulv.core.pink import pink_noise
from mulv.core.types import AnyBatch, Batch, Metrics, PyTree

_OBSERVE = 1 << 20  # folded into the keys of `observe`, so that they differ from those of actions
Packed = tuple[Array, ...]
Learned = tuple[Packed, Metrics, Bool[Array, "steps"]]  # see `update`


@partial(jax.jit, static_argnums=0)
def init(agent: AbstractAgent, key: PRNGKeyArray) -> Packed:
    """The agent's initial state."""
    return pack(agent.init(key))


def pack(state: PyTree) -> Packed:
    """The arrays of a state as a tuple."""
    return tuple(jax.tree.leaves(state))


def unpack(agent: AbstractAgent, packed: Packed) -> PyTree:
    """The agent's state as a pytree, from its packed arrays."""
    return jax.tree.unflatten(_structure(agent), packed)


@cache
def _structure(agent: AbstractAgent) -> jax.tree_util.PyTreeDef:
    return jax.tree.structure(jax.eval_shape(agent.init, jax.random.key(0)))


class Carry(NamedTuple):
    """What acting carries from one step to the next; every leaf has one row per environment."""

    memory: PyTree  # the agent's memory after its newest observation
    action: Float[Array, "lane act"]  # the action taken after that observation


def init_carry(agent: AbstractAgent, num_envs: int) -> Carry:
    """The carry before the first observation: initial memories and zero actions."""
    memory = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (num_envs, *leaf.shape)), agent.init_memory())
    return Carry(memory, jnp.zeros((num_envs, agent.spec.act_dim)))


@partial(jax.jit, static_argnums=0)
def observe(
    agent: AbstractAgent,
    packed: Packed,
    carry: Carry,
    obs: Float[Array, "lane obs"],
    first: Bool[Array, "lane"],
    key: PRNGKeyArray,
    step: Int[Array, ""],
    reward: Float[Array, "lane"] | None = None,
) -> Carry:
    """The carry after these observations and the rewards that came with them, with zero actions.

    `first` marks environments whose episode begins: their memory and action are reset before. Without
    `reward` all rewards are zero.
    """
    state, envs = unpack(agent, packed), obs.shape[0]
    keys = jax.random.split(jax.random.fold_in(jax.random.fold_in(key, step), _OBSERVE), envs)

    def one(memory: PyTree, a_prev: Array, r_prev: Array, o_h: Array, first: Array, key: Array) -> PyTree:
        memory, a_prev, r_prev = jax.tree.map(
            lambda fresh, old: jnp.where(first, fresh, old),
            (agent.init_memory(), jnp.zeros_like(a_prev), jnp.zeros_like(r_prev)),
            (memory, a_prev, r_prev),
        )
        return agent.observe(state, memory, a_prev, r_prev, o_h, key)

    rewards = jnp.zeros(envs) if reward is None else reward
    memory = jax.vmap(one)(carry.memory, carry.action, rewards, obs, first, keys)
    return Carry(memory, jnp.zeros_like(carry.action))


@partial(jax.jit, static_argnames=("agent", "deterministic"))
def act(
    agent: AbstractAgent,
    packed: Packed,
    carry: Carry,
    obs: Float[Array, "lane obs"],
    first: Bool[Array, "lane"],
    key: PRNGKeyArray,
    step: Int[Array, ""],
    reward: Float[Array, "lane"] | None = None,
    *,
    deterministic: bool,
) -> Carry:
    """The carry after these observations, with the actions that the agent chooses.

    Exploration noise depends on `key` and `step` alone.
    """
    memory, _ = observe(agent, packed, carry, obs, first, key, step, reward)
    state, shape = unpack(agent, packed), carry.action.shape
    noise = None if deterministic else pink_noise(key, step, shape, agent.octaves)
    return Carry(memory, jax.vmap(lambda one, noise: agent.act(state, one, noise))(memory, noise))


@partial(jax.jit, static_argnums=0)
def latents(agent: AbstractAgent, packed: Packed, carry: Carry) -> Float[Array, "lane latent"] | None:
    """`agent.latent` of each environment's memory and action; None for an agent without a latent."""
    state = unpack(agent, packed)
    return jax.vmap(lambda memory, a_h: agent.latent(state, memory, a_h))(*carry)


@partial(jax.jit, static_argnums=0)
def embed(
    agent: AbstractAgent, packed: Packed, frames: UInt8[Array, "batch 64 64 3"]
) -> Float[Array, "batch obs"]:
    """The embedding of each frame."""
    state, encoder = unpack(agent, packed), _encoder(agent)
    return jax.vmap(lambda frame: encoder.embed(state, frame))(frames)


@partial(jax.jit, static_argnums=0)
def pictures(agent: AbstractAgent, packed: Packed, batch: Batch) -> UInt8[Array, "batch picture 64 64 3"]:
    """Pictures of observed frames and of the agent's reconstructions and predictions of them."""
    return _encoder(agent).pictures(unpack(agent, packed), batch)


def _encoder(agent: AbstractAgent) -> ObservationEncoder:
    assert agent.encoder is not None
    return agent.encoder


@partial(jax.jit, static_argnums=0)
def inspect(agent: AbstractAgent, packed: Packed, batch: AnyBatch, key: PRNGKeyArray) -> Metrics:
    """`agent.inspect`: metrics that are too costly for every update, on one batch."""
    return agent.inspect(unpack(agent, packed), batch, key)


@partial(jax.jit, static_argnums=0, donate_argnums=1)
def update(
    agent: AbstractAgent, packed: Packed, batches: AnyBatch, key: PRNGKeyArray, first_update: Int[Array, ""]
) -> Learned:
    """The state after one update per batch, in a single scan; metrics; and which updates were finite.

    The metrics are those of the first non-finite update, or of the last update if all are finite.
    """

    def body(state: PyTree, xs: tuple[AnyBatch, Array]) -> tuple[PyTree, tuple[Metrics, Array]]:
        batch, number = xs
        state, metrics = agent.update(state, batch, jax.random.fold_in(key, number))
        return state, (metrics, tree_all_finite(metrics))

    numbers = first_update + jnp.arange(jax.tree.leaves(batches)[0].shape[0])
    state, (metrics, finite) = jax.lax.scan(body, unpack(agent, packed), (batches, numbers))
    shown = jnp.where(jnp.all(finite), finite.shape[0] - 1, jnp.argmin(finite))
    return pack(state), jax.tree.map(lambda m: m[shown], metrics), finite


def _bits(key: Array, bit_width: int, shape: tuple[int, ...]) -> Array:
    return sequential_vmap(lambda one: rbg_prng_impl.random_bits(one, bit_width, shape))(key)


_RBG_OF_EACH = define_prng_impl(
    key_shape=rbg_prng_impl.key_shape,
    seed=rbg_prng_impl.seed,
    split=rbg_prng_impl.split,
    random_bits=_bits,
    fold_in=rbg_prng_impl.fold_in,
    name="rbg_of_each",
    tag="rbg_of_each",
)


def key_of_each(key_data: Int[Array, "words"]) -> PRNGKeyArray:
    """A key whose draws under `vmap` equal its draws alone; plain `rbg` would use the first key for all."""
    return jax.random.wrap_key_data(key_data, impl=_RBG_OF_EACH)


@partial(jax.jit, static_argnums=0, donate_argnums=1)
def update_vmapped(
    agent: AbstractAgent,
    packed: tuple[Packed, ...],
    batches: tuple[AnyBatch, ...],
    keys: tuple[PRNGKeyArray, ...],
    first_update: Int[Array, ""],
) -> tuple[Learned, ...]:
    """`update` of several states of one agent under one `vmap`; each result equals `update` up to rounding.

    States are stacked and split inside the call, so that each run keeps its own arrays between calls.
    """

    def one(packed: Packed, batches: AnyBatch, key_data: Array) -> Learned:
        return update(agent, packed, batches, key_of_each(key_data), first_update)

    each = [(p, b, jax.random.key_data(k)) for p, b, k in zip(packed, batches, keys, strict=True)]
    learned = jax.vmap(one)(*jax.tree.map(lambda *leaves: jnp.stack(leaves), *each))
    return tuple(jax.tree.map(lambda leaf, n=n: leaf[n], learned) for n in range(len(each)))
