"""Assigns cores to runs, so that parallel runs do not compete for the same core.

Two runs with one thread each are faster on two cores than one run with two threads. A run's exact results
depend on how many cores it may use (XLA splits matrix products among them), but not on which ones.
"""

import fcntl
import os
import tempfile
from pathlib import Path
from typing import IO

_held: list[IO[bytes]] = []  # locked files, kept open until the process ends


def available_cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def pin_to_free_cores(number: int) -> None:
    """Pin this process to `number` cores, if possible ones that no other run of this user holds."""
    if not hasattr(os, "sched_getaffinity"):
        return  # this system cannot pin; the thread settings of `process.py` still apply
    cores = sorted(os.sched_getaffinity(0))
    turn = os.getpid() % len(cores)  # start at different cores, so that runs spread even if none is free
    order = [core for core in cores if _lend(core, number)]
    chosen = (order + [core for core in cores[turn:] + cores[:turn] if core not in order])[:number]
    os.sched_setaffinity(0, chosen)


def _lend(core: int, number: int) -> bool:
    """Take a core's lock; False if it is not free, or if this process already has `number` cores."""
    if len(_held) >= number:
        return False
    directory = Path(tempfile.gettempdir()) / f"mulv-cores-{os.getuid()}"
    try:
        directory.mkdir(mode=0o700, exist_ok=True)
        file = (directory / str(core)).open("ab")
    except OSError:
        return False  # locks are optional: without them runs are spread only at random
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.close()
        return False
    _held.append(file)
    return True
