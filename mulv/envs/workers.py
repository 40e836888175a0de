"""Gymnasium's vector environments, in this process and in worker processes, as lanes use them."""

import multiprocessing
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import wait
from typing import Any

import numpy as np
from gymnasium.vector import AsyncVectorEnv, SyncVectorEnv

from mulv.core.errors import EnvironmentFault
from mulv.envs.wrappers import SUCCESS

DEATH_SECONDS = 5.0  # within which a process whose pipe broke is known to have ended
CLOSE_SECONDS = 5.0  # that workers have to end by themselves, before they are killed


class WorkerDied(EnvironmentFault):
    """A worker process ended by itself: the simulator crashed, or somebody killed it."""


class QuietVectorEnv(SyncVectorEnv):
    """Gymnasium's, without stacking what a simulator says of itself at every step."""

    def _add_info(
        self, vector_infos: dict[str, Any], env_info: dict[str, Any], env_num: int
    ) -> dict[str, Any]:
        wanted = {key: env_info[key] for key in SUCCESS if key in env_info}
        return super()._add_info(vector_infos, wanted, env_num) if wanted else vector_infos


class WorkerVectorEnv(AsyncVectorEnv):
    """Gymnasium's, where a worker process that dies is named, and closing ends whatever is left."""

    def step_async(self, actions: np.ndarray) -> None:
        with self._deaths_named():
            super().step_async(actions)

    def step_wait(self, timeout: float | None = None) -> Any:
        with self._deaths_named():
            return super().step_wait(timeout)

    def reset_async(
        self, seed: int | list[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> None:
        with self._deaths_named():
            super().reset_async(seed, options)

    def reset_wait(self, timeout: float | None = None) -> Any:
        with self._deaths_named():
            return super().reset_wait(timeout)

    def _check_spaces(self) -> None:
        """The constructor's last act, and the first to hear of a worker that could not make its own."""
        try:
            with self._deaths_named():
                super()._check_spaces()
        except WorkerDied as death:
            self.close()
            raise WorkerDied(f"{death} when it made the environment; what it said is above") from death

    def close_extras(self, timeout: float | None = None, terminate: bool = False) -> None:
        """End every process. Nothing is asked of them: they may be dead, or hang."""
        for process in self.processes:
            process.terminate()
        patience = time.monotonic() + CLOSE_SECONDS
        for process in self.processes:
            process.join(max(patience - time.monotonic(), 0.0))
            if process.exitcode is None:  # it was stopped, or does not listen
                process.kill()
                process.join()
        for pipe in self.parent_pipes:
            if pipe is not None:
                pipe.close()

    @contextmanager
    def _deaths_named(self) -> Iterator[None]:
        """A broken pipe, or an answer that does not come, becomes a `WorkerDied` where a worker did."""
        try:
            yield
        except (EOFError, ConnectionError) as error:
            self._name_deaths(error, DEATH_SECONDS)
            raise
        except multiprocessing.TimeoutError as error:
            self._name_deaths(error, 0.0)
            raise

    def _name_deaths(self, error: Exception, seconds: float) -> None:
        # A worker whose environment raised has said so: Gymnasium forgot its pipe, and its end is no news.
        quiet = [lane for lane, pipe in enumerate(self.parent_pipes) if pipe is not None]
        ended = wait([self.processes[lane].sentinel for lane in quiet], seconds)
        dead = []
        for lane in (lane for lane in quiet if self.processes[lane].sentinel in ended):
            self.processes[lane].join(DEATH_SECONDS)  # it has ended, but its exit code may take a moment
            dead.append(f"the worker process of lane {lane} died ({_end(self.processes[lane].exitcode)})")
        if dead:
            raise WorkerDied(", ".join(dead)) from error


def _end(code: int | None) -> str:
    """How a process ended."""
    if code is None or code >= 0:
        return f"exit code {code}"
    try:
        return f"signal {signal.Signals(-code).name}"
    except ValueError:  # one without a name
        return f"signal {-code}"
