"""The part of a sweep that runs on a node of a Ray cluster. Fast to import: runs are separate processes."""

import contextlib
import os
import shutil
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mulv.bench.process import Child, Message

BUSY_SECONDS = 60.0  # to wait for a killed task's process to release its run


class News:
    """A Ray actor that holds the newest progress message of each run. Results do not depend on it."""

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
    """Run jobs in one process on this node; returns the last message of each, by the job's key.

    A task that replaces a killed one resumes the runs that it finds on the node.
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
    """Delete a run's directory, and its parents up to `root` that are then empty."""
    shutil.rmtree(directory, ignore_errors=True)
    with contextlib.suppress(OSError):
        while directory != root:
            directory = directory.parent
            directory.rmdir()
