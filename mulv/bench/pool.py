"""Pools start the processes of runs and report their messages; the sweep decides what to do."""

import selectors
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

from mulv.bench.process import Child, Message
from mulv.bench.suite import Job


class Event(NamedTuple):
    """A message of a run: `steps`, or at its end a `result` or an `error` (see child.py)."""

    job: Job
    message: Message


class Pool(Protocol):
    """Parallel runs, on this machine or on others."""

    slots: int  # processes in parallel

    def start(self, jobs: Sequence[Job]) -> None:
        """Start or resume runs in one process; several must differ only in their seed."""

    def free(self) -> bool:
        """Whether another process may start."""

    def events(self, seconds: float) -> list[Event]:
        """New messages; waits up to `seconds` for the first."""

    def settled(self, message: Message) -> None:
        """Called when a result is in the store: what is no longer needed of the run may be deleted."""

    def close(self) -> None:
        """End all running processes at once."""


class LocalPool:
    """Processes on this machine."""

    def __init__(self, runs: Path, *, slots: int, threads: int = 1, keep_replay: bool = False):
        self.slots = slots
        self._runs, self._threads, self._keep_replay = runs, threads, keep_replay
        self._selector = selectors.DefaultSelector()

    def start(self, jobs: Sequence[Job]) -> None:
        child = Child([job.to_json() for job in jobs], self._runs, self._threads)
        self._selector.register(child, selectors.EVENT_READ, jobs)

    def free(self) -> bool:
        return len(self._selector.get_map()) < self.slots

    def events(self, seconds: float) -> list[Event]:
        events = []
        for key, _ in self._selector.select(seconds):
            child: Child = key.fileobj  # type: ignore[assignment]
            descriptor = child.fileno()
            events += [Event(key.data[number], message) for number, message in child.read()]
            if child.ended:
                self._selector.unregister(descriptor)
        return events

    def settled(self, message: Message) -> None:
        """Delete the run's replay, which is large, unless it should be kept; the agent and its logs stay."""
        if not self._keep_replay:
            shutil.rmtree(Path(message["directory"]) / "replay", ignore_errors=True)

    def close(self) -> None:
        for key in list(self._selector.get_map().values()):
            key.fileobj.kill()  # type: ignore[union-attr]
            self._selector.unregister(key.fd)
        self._selector.close()
