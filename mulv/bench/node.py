"""What of a sweep runs on a node of a Ray cluster. Light to import: the run is a process of its own."""

import contextlib
import os
import shutil
import tempfile
import time
from collections.abc import Mapping
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


def run_on_node(
    jobs: Mapping[str, dict[str, Any]], sweep: str, threads: int, news: Any
) -> dict[str, Message]:
    """Runs in one process, on whatever node this is; jobs and what they came to are named by their keys.

    A task that follows a killed one resumes what it finds there.
    """
    runs = Path(tempfile.gettempdir()) / f"mulv-runs-{os.getuid()}" / sweep
    give_up = time.monotonic() + BUSY_SECONDS
    answers: dict[str, Message] = {}
    left = list(jobs)
    while True:
        child = Child([jobs[key] for key in left], runs, threads)
        while not child.ended:
            for number, message in child.read():
                if "steps" in message:
                    news.tell.remote(left[number], message)
                else:
                    answers[left[number]] = message
        left = [key for key, message in answers.items() if message.get("busy")]
        if not left or time.monotonic() > give_up:
            break
        time.sleep(1.0)
    for message in answers.values():
        if "result" in message:
            _remove(Path(message["directory"]), runs)
    return {key: {**message, "busy": False} for key, message in answers.items()}


def _remove(directory: Path, root: Path) -> None:
    """A run's directory, and those above it that are empty then."""
    shutil.rmtree(directory, ignore_errors=True)
    with contextlib.suppress(OSError):
        while directory != root:
            directory = directory.parent
            directory.rmdir()
