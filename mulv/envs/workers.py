"""Gymnasium's vector environments as `VectorEnv` uses them: in this process, or in worker processes."""

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

DEATH_SECONDS = 5.0  # to wait for the exit of a process whose pipe broke
CLOSE_SECONDS = 5.0  # for workers to end after SIGTERM, before they are killed


class WorkerDied(EnvironmentFault):
    """A worker process ended: its simulator crashed, or it was killed."""


class QuietVectorEnv(SyncVectorEnv):
    """Gymnasium's SyncVectorEnv, with only success in its infos: stacking all at every step is slow."""

    def _add_info(
        self, vector_infos: dict[str, Any], env_info: dict[str, Any], env_num: int
    ) -> dict[str, Any]:
        wanted = {key: env_info[key] for key in SUCCESS if key in env_info}
        return super()._add_info(vector_infos, wanted, env_num) if wanted else vector_infos


class WorkerVectorEnv(AsyncVectorEnv):
    """Gymnasium's AsyncVectorEnv, with errors that name dead workers, and a close that ends all processes."""

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
        """Called last in the constructor: here a worker that could not build its environment is noticed."""
        try:
            with self._deaths_named():
                super()._check_spaces()
        except WorkerDied as death:
            self.close()
            raise WorkerDied(f"{death} when it made the environment; what it said is above") from death

    def close_extras(self, timeout: float | None = None, terminate: bool = False) -> None:
        """End every process by signals, without messages: a process may be dead, or hang."""
        for process in self.processes:
            process.terminate()
        patience = time.monotonic() + CLOSE_SECONDS
        for process in self.processes:
            process.join(max(patience - time.monotonic(), 0.0))
            if process.exitcode is None:  # it is stopped, or ignores SIGTERM
                process.kill()
                process.join()
        for pipe in self.parent_pipes:
            if pipe is not None:
                pipe.close()

    @contextmanager
    def _deaths_named(self) -> Iterator[None]:
        """Turn a broken pipe or a timeout into a `WorkerDied`, if a worker process ended."""
        try:
            yield
        except (EOFError, ConnectionError) as error:
            self._name_deaths(error, DEATH_SECONDS)
            raise
        except multiprocessing.TimeoutError as error:
            self._name_deaths(error, 0.0)
            raise

    def _name_deaths(self, error: Exception, seconds: float) -> None:
        # If a worker's environment raised, Gymnasium has set its pipe to None and reports that error itself.
        quiet = [lane for lane, pipe in enumerate(self.parent_pipes) if pipe is not None]
        ended = wait([self.processes[lane].sentinel for lane in quiet], seconds)
        dead = []
        for lane in (lane for lane in quiet if self.processes[lane].sentinel in ended):
            self.processes[lane].join(DEATH_SECONDS)  # the exit code may come a moment later
            dead.append(f"the worker process of lane {lane} died ({_end(self.processes[lane].exitcode)})")
        if dead:
            raise WorkerDied(", ".join(dead)) from error


def _end(code: int | None) -> str:
    """How a process ended, as text: its exit code or signal."""
    if code is None or code >= 0:
        return f"exit code {code}"
    try:
        return f"signal {signal.Signals(-code).name}"
    except ValueError:  # a signal without a name
        return f"signal {-code}"
