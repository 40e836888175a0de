"""Collects trajectories of a task, with the hidden values at every position."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from mulv.agents.base import AbstractAgent
from mulv.core.errors import MulvError
from mulv.envs import VectorEnv
from mulv.run import compiled, seeding
from mulv.run.seeding import Stream

ENVS = 10  # environments stepped in parallel
LENGTH = 400  # decisions in a sequence; fewer if there would be fewer than LEAST_SEQUENCES
LEAST_SEQUENCES = 20
LEAST_DECISIONS = 1_000
NOISES = (0.0, 0.1, 0.2, 0.4)  # noise on a policy's actions, one size per episode, so that actions vary

Choose = Callable[[VectorEnv], np.ndarray]  # actions for the environments' present observations


class Sequences(NamedTuple):
    """Sequences of experience; each starts with a new episode and may contain several.

    A position holds o_h, its hidden values, and the action and reward before it: a_{h-1} and r_{h-1}, zero
    where an episode begins. `step` counts from 0 within an episode. An episode's last observation is left
    out, because its hidden values are lost when the environment is reset.
    """

    obs: Float[np.ndarray, "batch time obs"]
    actions: Float[np.ndarray, "batch time act"]
    rewards: Float[np.ndarray, "batch time"]
    hidden: Float[np.ndarray, "batch time hidden"]
    step: Int[np.ndarray, "batch time"]

    @property
    def episode(self) -> Int[np.ndarray, "batch time"]:
        """The number of each position's episode; no two sequences share one."""
        return np.cumsum(self.step.ravel() == 0).reshape(self.step.shape) - 1


def collect(
    envs: VectorEnv, choose: Choose, decisions: int, tick: Callable[[int], None] = lambda taken: None
) -> Sequences:
    """Sequences of equal length with at least `decisions` in all; `tick` is called with the number so far."""
    if decisions < LEAST_DECISIONS:
        raise MulvError(f"{decisions} decisions are too few to learn from; take at least {LEAST_DECISIONS:,}")
    length = min(LENGTH, decisions // LEAST_SEQUENCES)
    rounds = -(-decisions // (envs.num_envs * length))
    parts = []
    for _ in range(rounds):
        parts.append(_round(envs, choose, length))
        tick(len(parts) * envs.num_envs * length)
    return Sequences(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))


def _round(envs: VectorEnv, choose: Choose, length: int) -> Sequences:
    """One sequence of each environment, starting with new episodes."""
    envs.start()
    step, rewards = np.zeros(envs.num_envs, np.int64), np.zeros(envs.num_envs)
    actions = np.zeros((envs.num_envs, envs.spec.act_dim), np.float32)
    positions = []
    for h in range(length + 1):
        hidden = envs.hidden
        if hidden is None:
            raise MulvError("this task hides nothing")
        positions.append((envs.obs.copy(), actions, rewards, hidden, step))
        if h == length:
            break
        actions = choose(envs)
        rows = envs.step(actions)[0]
        begins = envs.first
        actions = np.where(begins[:, None], 0, actions).astype(np.float32)
        rewards, step = np.where(begins, 0, rows.reward), np.where(begins, 0, step + 1)
    return Sequences(*(np.stack(column, axis=1) for column in zip(*positions, strict=True)))


def uniform_actions(seed: int) -> Choose:
    """Uniform random actions."""
    rng = seeding.generator(seed, Stream.WARM_UP)
    return lambda envs: envs.random_actions(rng)


def policy_actions(agent: AbstractAgent, state: compiled.Packed, num_envs: int, seed: int) -> Choose:
    """A policy's deterministic actions, plus noise whose size is one of NOISES in each episode.

    Discrete actions are replaced by uniform ones with that probability instead.
    """
    rng, key = seeding.generator(seed, Stream.ACT), seeding.key(seed, Stream.ACT)
    carry, calls = compiled.init_carry(agent, num_envs), 0

    def choose(envs: VectorEnv) -> np.ndarray:
        nonlocal carry, calls
        step = np.int32(calls)
        carry = compiled.act(agent, state, carry, envs.obs, envs.first, key, step, deterministic=True)
        calls += 1
        chosen = np.asarray(carry.action)
        size = np.asarray(NOISES)[(np.arange(num_envs) + envs.episodes_begun) % len(NOISES), None]
        if envs.spec.discrete:
            taken = np.where(rng.random(size.shape) < size, envs.random_actions(rng), chosen)
        else:
            taken = np.clip(chosen + size * rng.normal(size=chosen.shape), -1, 1)
        taken = taken.astype(np.float32)
        carry = carry._replace(action=taken)  # the agent's memory needs the action that was taken
        return taken

    return choose
