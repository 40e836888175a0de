"""SIGTERM and Ctrl-C as a flag that the training loop checks between steps."""

import signal
import threading
from types import FrameType
from typing import Any, Self


class Interrupted(Exception):
    """The run stopped on a signal, after saving a checkpoint."""

    def __init__(self, signum: int):
        super().__init__(signal.Signals(signum).name)
        self.exit_code = 128 + signum


class Interrupts:
    """While entered, the first signal is stored in `signum`; a second one has its usual effect.

    Without `listen` signals keep their usual effect: the process ends at once, without a checkpoint.
    """

    def __init__(self, *, listen: bool = True) -> None:
        self._listen = listen
        self.signum: int | None = None
        self._previous: dict[int, Any] = {}

    def __enter__(self) -> Self:
        if self._listen and threading.current_thread() is threading.main_thread():
            for signum in (signal.SIGTERM, signal.SIGINT):
                self._previous[signum] = signal.signal(signum, self._remember)
        return self

    def __exit__(self, *exception: object) -> None:
        for signum, handler in self._previous.items():
            signal.signal(signum, handler)

    def _remember(self, signum: int, frame: FrameType | None) -> None:
        self.signum = signum
        signal.signal(signum, self._previous[signum])

    @property
    def pending(self) -> bool:
        """Whether a signal has arrived."""
        return self.signum is not None
