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
    """Raise `EnvironmentFault` where the body takes longer; the traceback shows where it hung.

    Only Python code of the main thread can be interrupted; an environment that may hang inside C belongs
    in worker processes (`--env-workers`), where the limit always holds. Time is counted in ticks, because a
    process that was stopped (Ctrl-Z) and goes on is given one of those that it missed, not all.
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
