"""A vector environment that returns rows for the replay, seeds every reset, and names faults.

A lane is the index of an environment in the vector environment, and of its rows in the replay.
"""

import multiprocessing
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv

from mulv.core.errors import EnvironmentFault, MulvError, NonFiniteError
from mulv.core.spec import Step
from mulv.envs.deadline import deadline
from mulv.envs.make import env_spec
from mulv.envs.workers import QuietVectorEnv, WorkerDied, WorkerVectorEnv
from mulv.envs.wrappers import SUCCESS

EpisodeSeed = Callable[[int, int], int]  # (lane, number of the episode) to the seed of its reset


class EpisodeSummary(NamedTuple):
    """Return, length and success of a finished episode."""

    lane: int
    ret: float
    length: int
    success: bool | None  # None if the environment does not report it


class VectorEnv:
    """Wraps a Gymnasium vector environment; all three autoreset modes behave the same.

    `start` and `step` return rows for the replay, in the order in which to append them; no transition crosses
    a reset. Without autoreset (as `of` builds it) every episode has a seed of its own and does not depend on
    earlier ones. Environments that reset themselves are seeded once, at the start.
    """

    def __init__(self, env: gym.vector.VectorEnv, episode_seed: EpisodeSeed, timeout: float = 60.0):
        self.env, self.spec, self.num_envs = env, env_spec(env), env.num_envs
        self._mode = AutoresetMode(env.metadata.get("autoreset_mode", AutoresetMode.NEXT_STEP))
        self._episode_seed, self._timeout = episode_seed, timeout
        self.episodes_begun = np.zeros(self.num_envs, np.int64)
        self.obs = np.zeros((self.num_envs, *self.spec.obs_shape), self.spec.obs_dtype)
        self.reward = np.zeros(self.num_envs, np.float32)  # came with `obs`; zero with an episode's first
        self._step = np.zeros(self.num_envs, np.int64)
        self._return = np.zeros(self.num_envs)
        self._success: list[bool | None] = [None] * self.num_envs
        self._awaits_reset = np.zeros(self.num_envs, bool)  # used only in mode NEXT_STEP
        self._sent = np.zeros((self.num_envs, self.spec.act_dim), np.float32)
        self.finished: list[EpisodeSummary] = []

    @classmethod
    def of(
        cls,
        make: Callable[[], gym.Env],
        num: int,
        episode_seed: EpisodeSeed,
        *,
        workers: bool = False,
        timeout: float = 60.0,
    ) -> "VectorEnv":
        """A vector environment of `num` copies, in this process or each in a worker process."""
        if not workers:
            return cls(
                QuietVectorEnv([make] * num, autoreset_mode=AutoresetMode.DISABLED), episode_seed, timeout
            )
        # Not fork: JAX's threads do not survive it.
        env = WorkerVectorEnv([make] * num, context="spawn", autoreset_mode=AutoresetMode.DISABLED)
        return cls(env, episode_seed, timeout)

    @property
    def first(self) -> np.ndarray:
        """Mask of lanes whose present observation is the first of an episode."""
        return self._step == 0

    @property
    def hidden(self) -> np.ndarray | None:
        """The hidden entries of each lane's present observation; None if the task hides nothing."""
        if not isinstance(self.env, SyncVectorEnv) or not self.env.envs[0].has_wrapper_attr("hidden"):
            return None
        rows = np.stack([env.get_wrapper_attr("hidden") for env in self.env.envs])
        return rows if rows.shape[1] else None

    def random_actions(self, rng: np.random.Generator) -> np.ndarray:
        """A uniform action for each lane: in [-1, 1], or one-hot if actions are discrete."""
        if self.spec.discrete:
            return np.eye(self.spec.act_dim, dtype=np.float32)[
                rng.integers(self.spec.act_dim, size=self.num_envs)
            ]
        return rng.uniform(-1, 1, (self.num_envs, self.spec.act_dim)).astype(np.float32)

    def start(self) -> Step:
        """Reset every environment; returns the rows of the first observations."""
        return self._reset(np.ones(self.num_envs, bool))

    def step(self, actions: np.ndarray) -> list[Step]:
        """Step every environment, and reset those whose episode ended; returns the rows of both."""
        self.send(actions)
        return self.receive()

    def send(self, actions: np.ndarray) -> None:
        """Send every environment its action; worker processes start to step."""
        self._sent = actions
        if isinstance(self.env, AsyncVectorEnv):
            with self._faults_named("step"):
                self.env.step_async(self._native(actions))

    def receive(self) -> list[Step]:
        """Wait for the step after `send`; returns the rows of the step, then those of resets, if any."""
        actions = self._sent
        with self._faults_named("step"):
            if isinstance(self.env, AsyncVectorEnv):
                obs, reward, terminated, truncated, info = self.env.step_wait(self._timeout)
            else:
                obs, reward, terminated, truncated, info = self.env.step(self._native(actions))
        was_reset, self._awaits_reset = self._awaits_reset, np.zeros(self.num_envs, bool)
        if was_reset.any():  # NEXT_STEP: these lanes ignored the action and were reset
            actions = np.where(was_reset[:, None], 0, actions).astype(np.float32)
            self._begin(was_reset)
        self._step += ~was_reset
        self._return += np.where(was_reset, 0.0, reward)
        ended = (terminated | truncated) & ~was_reset
        obs = np.asarray(obs)
        final = obs
        if self._mode == AutoresetMode.SAME_STEP and ended.any():
            final = obs.copy()
            final[ended] = np.stack([info["final_obs"][i] for i in np.flatnonzero(ended)])
        self._record_success(info, was_reset)
        rows = self._rows(np.arange(self.num_envs), final, actions, reward, terminated, truncated)
        self.reward = rows.reward.copy()
        if not ended.any():
            self.obs = final
            return [rows]
        self._finish(ended)
        if self._mode == AutoresetMode.DISABLED:
            self.obs = final
            return [rows, self._reset(ended)]
        self.obs = obs
        if self._mode == AutoresetMode.NEXT_STEP:
            self._awaits_reset = ended
            return [rows]
        self._begin(ended)
        return [rows, self._reset_rows(ended)]

    def _native(self, actions: np.ndarray) -> np.ndarray:
        return actions.argmax(-1) if self.spec.discrete else actions

    def close(self) -> None:
        """Close the environments and end their processes, even if these hang.

        If closing fails or hangs, only a warning is given, so that an earlier error is not hidden.
        """
        try:
            if isinstance(self.env, AsyncVectorEnv):
                self.env.close(terminate=True)
            else:
                with deadline(self._timeout, "the environment's close"):
                    self.env.close()
        except Exception as error:
            warnings.warn(f"the environment did not close: {type(error).__name__}: {error}", stacklevel=2)

    def _reset(self, mask: np.ndarray) -> Step:
        seeds = [
            self._episode_seed(i, int(n)) if m else None
            for i, (n, m) in enumerate(zip(self.episodes_begun, mask, strict=True))
        ]
        with self._faults_named("reset"):
            # Gymnasium's vector environments without autoreset take a mask of the lanes to reset.
            options = None if mask.all() else {"reset_mask": mask}
            if isinstance(self.env, AsyncVectorEnv):
                self.env.reset_async(seed=seeds, options=options)
                obs, _ = self.env.reset_wait(self._timeout)
            else:
                obs, _ = self.env.reset(seed=seeds, options=options)  # type: ignore[arg-type]
        self._begin(mask)
        self.obs = np.where(mask.reshape(-1, *[1] * len(self.spec.obs_shape)), obs, self.obs)
        return self._reset_rows(mask)

    def _begin(self, mask: np.ndarray) -> None:
        self.episodes_begun += mask
        self._step[mask], self._return[mask], self.reward[mask] = 0, 0.0, 0.0
        for i in np.flatnonzero(mask):
            self._success[i] = None

    def _finish(self, ended: np.ndarray) -> None:
        for i in map(int, np.flatnonzero(ended)):
            self.finished.append(
                EpisodeSummary(i, float(self._return[i]), int(self._step[i]), self._success[i])
            )

    def _record_success(self, info: dict[str, Any], was_reset: np.ndarray) -> None:
        """Update each lane's success: an episode succeeds if any of its steps reports success."""
        for source in (info, info.get("final_info", {})):
            for key in SUCCESS:
                if key in source:
                    present = (
                        np.asarray(source.get(f"_{key}", np.ones(self.num_envs, bool)), bool) & ~was_reset
                    )
                    for i in np.flatnonzero(present):
                        self._success[i] = bool(self._success[i]) or bool(source[key][i])

    def _reset_rows(self, mask: np.ndarray) -> Step:
        lane = np.flatnonzero(mask)
        zeros, no = np.zeros(lane.size), np.zeros(lane.size, bool)
        return self._rows(
            lane, self.obs[lane], np.zeros((lane.size, self.spec.act_dim), np.float32), zeros, no, no
        )

    def _rows(
        self,
        lane: np.ndarray,
        obs: np.ndarray,
        action: np.ndarray,
        reward: np.ndarray,
        terminated: np.ndarray,
        truncated: np.ndarray,
    ) -> Step:
        rows = Step(
            lane, obs, action, np.asarray(reward, np.float32), terminated, truncated, self._step[lane]
        )
        for name, value in (("observation", rows.obs), ("reward", rows.reward)):
            if not np.isfinite(value).all():
                bad = int(lane[np.flatnonzero(~np.isfinite(value.reshape(len(lane), -1)).all(1))[0]])
                raise NonFiniteError(
                    f"the environment gave a non-finite {name} at step {self._step[bad]} of episode "
                    f"{self.episodes_begun[bad]} (lane {bad})"
                )
        return rows

    @contextmanager
    def _faults_named(self, call: str) -> Iterator[None]:
        """Turn any error or timeout of the environment into an `EnvironmentFault`, caused by the error."""
        what = f"the environment's {call}, after {int(self._step.max())} steps of its episode,"
        try:
            if isinstance(self.env, AsyncVectorEnv):  # its own timeout also works inside C
                yield
            else:
                with deadline(self._timeout, what):
                    yield
        except WorkerDied as death:
            raise EnvironmentFault(f"{death} in {what} because it crashed or memory ran out") from death
        except MulvError:
            raise
        except multiprocessing.TimeoutError as error:
            raise EnvironmentFault(f"{what} did not answer within {self._timeout:g} s") from error
        except Exception as error:
            raise EnvironmentFault(f"{what} raised {type(error).__name__}: {error}") from error
