"""Where runs run. A pool starts them and says what happens; the sweep decides what follows from it."""

import selectors
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

from mulv.bench.process import Child, Message
from mulv.bench.suite import Job


class Event(NamedTuple):
    """Something a run said: `steps`, or at its end a `result` or an `error` (see child.py)."""

    job: Job
    message: Message


class Pool(Protocol):
    """Runs side by side, on this machine or on others."""

    slots: int  # how many processes at once

    def start(self, jobs: Sequence[Job]) -> None:
        """Begin runs or take them up, in one process; several differ in nothing but the seed."""

    def free(self) -> bool:
        """Whether another process may start."""

    def events(self, seconds: float) -> list[Event]:
        """What happened; waits so long at most for something to happen."""

    def settled(self, message: Message) -> None:
        """This result is in the store: what was kept for its sake may go."""

    def close(self) -> None:
        """End whatever runs, at once."""


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
        """The agent and its logs stay; the replay, which is large, only where it was asked for."""
        if not self._keep_replay:
            shutil.rmtree(Path(message["directory"]) / "replay", ignore_errors=True)

    def close(self) -> None:
        for key in list(self._selector.get_map().values()):
            key.fileobj.kill()  # type: ignore[union-attr]
            self._selector.unregister(key.fd)
        self._selector.close()
