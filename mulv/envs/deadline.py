"""A time limit for calls into an environment that runs in this process."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from mulv.core.errors import EnvironmentFault

TICKS = 20


@contextmanager
def deadline(seconds: float, what: str) -> Iterator[None]:
    """Raise `EnvironmentFault` if the body takes longer than `seconds`; the traceback shows where it hung.

    Only Python code in the main thread can be interrupted. An environment that may hang inside C needs
    worker processes (`--env-workers`), where the limit always holds. Time is counted in timer ticks, so that
    time during which the process was stopped (Ctrl-Z) counts as one tick at most.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    left = TICKS

    def tick(signum: int, frame: FrameType | None) -> None:
        nonlocal left
        left -= 1
        if left <= 0:
            raise EnvironmentFault(f"{what} did not answer within {seconds:g} s")

    previous = signal.signal(signal.SIGALRM, tick)
    signal.setitimer(signal.ITIMER_REAL, seconds / TICKS, seconds / TICKS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)
