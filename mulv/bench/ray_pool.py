"""A pool on a Ray cluster: each process is a Ray task, and results are returned as Ray objects.

On its node a task starts the same process as a local pool (`child.py`). No file system is shared: run
directories are on the node's own disk, and are deleted once the result is returned.
"""

import hashlib
import importlib.util
import logging
import os
import platform
import socket
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mulv.bench.cores import available_cores
from mulv.bench.node import News, run_on_node
from mulv.bench.pool import Event
from mulv.bench.process import Message
from mulv.bench.suite import Job
from mulv.core.errors import MulvError

NEWS_SECONDS = 2.0  # between queries of the runs' progress
ANSWER_SECONDS = 10.0  # timeout of a call to the cluster


class RayPool:
    """Runs tasks on the cluster at `address`; "auto" is that of this machine, started if there is none."""

    def __init__(self, address: str, store: Path, *, limit: int | None, threads: int = 1, gpus: float = 0.0):
        if importlib.util.find_spec("ray") is None:
            raise MulvError("--ray needs the extra ray: pip install 'mulv[ray]'")
        check_address(address)
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # no usage statistics are sent
        import ray

        self._ray: Any = ray
        self._limit, self._threads = limit, threads
        _connect(ray, address)
        resources = ray.cluster_resources()
        self.slots = int(resources.get("CPU", 0) // threads)
        if gpus:
            self.slots = min(self.slots, int(resources.get("GPU", 0) // gpus))
        if self.slots < 1:
            ray.shutdown()
            raise MulvError(f"no node of the cluster can give a run {threads} CPUs and {gpus:g} GPUs")
        # A directory per store, so that sweeps do not mix on a node, and a restarted one finds its runs.
        self._sweep = hashlib.sha256(f"{platform.node()}:{store.absolute()}".encode()).hexdigest()[:12]
        # A lost task counts as a failed attempt, which the sweep retries as it does any other.
        self._task = ray.remote(num_cpus=threads, num_gpus=gpus, max_retries=0)(run_on_node)
        self._news: Any = ray.remote(num_cpus=0, max_restarts=-1)(News).remote()
        self._jobs: dict[Any, Sequence[Job]] = {}
        self._ask_at = 0.0

    def start(self, jobs: Sequence[Job]) -> None:
        by_key = {job.key: job.to_json() for job in jobs}
        self._jobs[self._task.remote(by_key, self._sweep, self._threads, self._news)] = jobs

    def free(self) -> bool:
        """Whether another process may start: Ray queues those that do not fit, and may grow the cluster."""
        return self._limit is None or len(self._jobs) < self._limit

    def events(self, seconds: float) -> list[Event]:
        ready, _ = self._ray.wait(list(self._jobs), num_returns=1, timeout=seconds)
        events = self._progress()
        for reference in ready:
            jobs = self._jobs.pop(reference)
            try:
                answers = self._ray.get(reference)
            except self._ray.exceptions.RayError as error:  # the worker or its node was lost
                first = (str(error).splitlines() or [""])[0]
                lost = {"error": f"{type(error).__name__}: {first}", "traceback": str(error)}
                answers = {job.key: lost for job in jobs}
            events += [Event(job, answers[job.key]) for job in jobs]
        return events

    def settled(self, message: Message) -> None:
        """Nothing to do: the node has already deleted the run."""

    def close(self) -> None:
        """Disconnect, which ends this sweep's tasks, and stops the cluster if this pool started it."""
        self._ray.shutdown()

    def _progress(self) -> list[Event]:
        if time.monotonic() < self._ask_at:
            return []
        self._ask_at = time.monotonic() + NEWS_SECONDS
        try:
            latest: dict[str, Message] = self._ray.get(self._news.read.remote(), timeout=NEWS_SECONDS)
        except self._ray.exceptions.RayError:
            return []  # the actor is being restarted
        running = {job.key: job for jobs in self._jobs.values() for job in jobs}
        return [Event(running[key], message) for key, message in latest.items() if key in running]


def check_address(address: str) -> None:
    """Raise an error if the address does not answer; Ray itself would retry for minutes."""
    if address == "auto":
        return
    host, _, port = address.removeprefix("ray://").rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=ANSWER_SECONDS).close()
    except ValueError:
        raise MulvError(f"{address!r} is not an address of a Ray cluster: give auto or HOST:PORT") from None
    except OSError as error:
        raise MulvError(f"there is no Ray cluster at {address}: {error}") from error


def _connect(ray: Any, address: str) -> None:
    quiet = {"log_to_driver": False, "logging_level": logging.ERROR}
    try:
        ray.init(address=address, **quiet)
    except ConnectionError as error:
        if address != "auto":
            raise MulvError(f"there is no Ray cluster at {address}: {error}") from error
        ray.init(num_cpus=available_cores(), include_dashboard=False, **quiet)
