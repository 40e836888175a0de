"""Cores are lent to runs, so that those side by side do not fight for one.

Two runs of one thread get more done on two cores than one run of two, and a run's bits depend on how many
cores it may use (XLA splits a matrix product among them), but not on which.
"""

import fcntl
import os
import tempfile
from pathlib import Path
from typing import IO

_held: list[IO[bytes]] = []  # open files: a lock lasts as long as its process


def available_cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def pin_to_free_cores(number: int) -> None:
    """Keep this process on so many cores, such as no other run of this user holds where there are any."""
    if not hasattr(os, "sched_getaffinity"):
        return  # this system does not pin; the thread settings of `process.py` hold all the same
    cores = sorted(os.sched_getaffinity(0))
    turn = os.getpid() % len(cores)  # where nothing is free, runs still spread
    order = [core for core in cores if _lend(core, number)]
    chosen = (order + [core for core in cores[turn:] + cores[:turn] if core not in order])[:number]
    os.sched_setaffinity(0, chosen)


def _lend(core: int, number: int) -> bool:
    """Take a core's lock, if it is free and we have not enough yet."""
    if len(_held) >= number:
        return False
    directory = Path(tempfile.gettempdir()) / f"mulv-cores-{os.getuid()}"
    try:
        directory.mkdir(mode=0o700, exist_ok=True)
        file = (directory / str(core)).open("ab")
    except OSError:
        return False  # lending is a courtesy: without it runs only spread by chance
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.close()
        return False
    _held.append(file)
    return True
