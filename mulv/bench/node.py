"""What of a sweep runs on a node of a Ray cluster. Light to import: the run is a process of its own."""

import contextlib
import os
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

from mulv.bench.process import Child, Message

BUSY_SECONDS = 60.0  # how long a killed task's process may take to let go of its run


class News:
    """An actor that runs tell how far they are, and the driver asks. Losing it loses nothing else."""

    def __init__(self) -> None:
        self._latest: dict[str, Message] = {}

    def tell(self, key: str, message: Message) -> None:
        self._latest[key] = message

    def read(self) -> dict[str, Message]:
        latest, self._latest = self._latest, {}
        return latest


def run_on_node(key: str, job: dict[str, Any], sweep: str, threads: int, news: Any) -> Message:
    """One run, on whatever node this is. A task that follows a killed one resumes what it finds there."""
    runs = Path(tempfile.gettempdir()) / f"mulv-runs-{os.getuid()}" / sweep
    give_up = time.monotonic() + BUSY_SECONDS
    while True:
        child = Child(job, runs, threads)
        last: Message = {"steps": 0}
        while "steps" in last:
            for last in child.read():
                if "steps" in last:
                    news.tell.remote(key, last)
        if not last.get("busy") or time.monotonic() > give_up:
            break
        time.sleep(1.0)
    if "result" in last:
        _remove(Path(last["directory"]), runs)
    return {**last, "busy": False}


def _remove(directory: Path, root: Path) -> None:
    """A run's directory, and those above it that are empty then."""
    shutil.rmtree(directory, ignore_errors=True)
    with contextlib.suppress(OSError):
        while directory != root:
            directory = directory.parent
            directory.rmdir()
