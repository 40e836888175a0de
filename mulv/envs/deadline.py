"""A time limit for calls into an environment that runs in this process."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from mulv.core.errors import EnvironmentFault


@contextmanager
def deadline(seconds: float, what: str) -> Iterator[None]:
    """Raise `EnvironmentFault` where the body takes longer; the traceback shows where it hung.

    Only Python code of the main thread can be interrupted; an environment that may hang inside C belongs
    in worker processes (`--env-workers`), where the limit always holds.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def expire(signum: int, frame: FrameType | None) -> None:
        raise EnvironmentFault(f"{what} did not answer within {seconds:g} s")

    previous = signal.signal(signal.SIGALRM, expire)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)
