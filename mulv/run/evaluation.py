"""Evaluation: whole episodes in separate, seeded environments; the result of every episode is kept.

A lane is the index of an environment in the vector environment; each lane gives one episode.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import jax
import numpy as np

from mulv.agents.base import AbstractAgent
from mulv.envs.vector_env import EpisodeSummary, VectorEnv
from mulv.run import compiled, seeding
from mulv.run.diagnostics.probe import EVERY, Probe, ProbeData, RecentSteps
from mulv.run.seeding import Stream


class Stopped(Exception):
    """`should_stop` returned True before the evaluation was finished."""


@dataclass(frozen=True)
class Evaluation:
    """The result of one evaluation, with one entry per episode in the order of their seeds."""

    returns: list[float]
    lengths: list[int]
    successes: list[bool] | None
    probe: Probe | None = None

    def to_json(self) -> dict[str, Any]:
        values = {"returns": self.returns, "lengths": self.lengths, "successes": self.successes}
        return values | (self.probe.summary() if self.probe else {})

    def summary(self) -> dict[str, float]:
        """Means over episodes, under Stable-Baselines3's names."""
        values = {
            "eval/mean_reward": float(np.mean(self.returns)),
            "eval/std_reward": float(np.std(self.returns)),
            "eval/mean_ep_length": float(np.mean(self.lengths)),
        }
        if self.successes is not None:
            values["eval/success_rate"] = float(np.mean(self.successes))
        return values | (self.probe.summary() if self.probe else {})


class Evaluator:
    """Runs one episode in each environment of a vector environment, which is built once and reused."""

    def __init__(self, make: Callable[[], gym.Env], *, episodes: int, seed: int, timeout: float = 60.0):
        self._make, self._episodes, self._seed, self._timeout = make, episodes, seed, timeout
        self._envs: VectorEnv | None = None
        self._number = 0

    def __call__(
        self,
        agent: AbstractAgent,
        state: compiled.Packed,
        *,
        number: int = 0,
        deterministic: bool = True,
        should_stop: Callable[[], bool] = lambda: False,
        watch: Callable[[np.ndarray], None] = lambda o_h: None,
    ) -> Evaluation:
        """Evaluate the agent. `number` counts the evaluations of a run: each has other seeds.

        `watch` is called with every observation of the first episode.
        """
        envs = self._fresh_envs(number)
        first: dict[int, EpisodeSummary] = {}
        carry = compiled.init_carry(agent, self._episodes)
        key, step = jax.random.fold_in(seeding.key(self._seed, Stream.EVAL_ACT), number), 0
        envs.start()
        probe, recent = ProbeData(), RecentSteps(getattr(agent.config, "window", 1))
        hides = envs.hidden is not None  # otherwise there is nothing to probe, and frames need no copies
        while len(first) < self._episodes:
            if should_stop():
                raise Stopped
            now = (envs.obs, envs.first, key, np.int32(step), envs.reward)
            carry = compiled.act(agent, state, carry, *now, deterministic=deterministic)
            if hides:
                recent.add(envs.obs, np.asarray(carry.action))
            if step % EVERY == 0 and (hidden := envs.hidden) is not None:
                latents = compiled.latents(agent, state, carry)
                if latents is not None:
                    running = np.asarray([i for i in range(self._episodes) if i not in first])
                    probe.add(np.asarray(latents), recent.inputs(), envs.obs, hidden, running)
            if 0 not in first:
                watch(envs.obs[0])
            envs.step(np.asarray(carry.action))
            step += 1
            # A finished lane starts another episode while others still run; only its first one counts.
            for episode in envs.finished:
                first.setdefault(episode.lane, episode)
            envs.finished.clear()
        done = [first[lane] for lane in range(self._episodes)]
        successes = [bool(e.success) for e in done] if any(e.success is not None for e in done) else None
        return Evaluation([e.ret for e in done], [e.length for e in done], successes, probe.fit())

    def close(self) -> None:
        """Close the environments."""
        if self._envs is not None:
            self._envs.close()

    def _fresh_envs(self, number: int) -> VectorEnv:
        if self._envs is None:
            self._envs = VectorEnv.of(self._make, self._episodes, self._episode_seed, timeout=self._timeout)
        self._number = number
        self._envs.finished.clear()
        self._envs.episodes_begun[:] = 0
        return self._envs

    def _episode_seed(self, lane: int, episode: int) -> int:
        return seeding.integer(self._seed, Stream.EVAL_ENV, self._number, lane, episode)
