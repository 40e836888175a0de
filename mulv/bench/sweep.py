"""A sweep: runs a list of jobs until each is in the store exactly once, with retries."""

import json
import sys
import time
import traceback
from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from mulv.bench import store
from mulv.bench.board import Board
from mulv.bench.pool import Pool
from mulv.bench.process import Message
from mulv.bench.suite import Job
from mulv.core.errors import MulvError
from mulv.run.config import config_hash, from_json
from mulv.run.directory import code_version, commit
from mulv.run.interrupts import Interrupts
from mulv.run.result import RunResult

WAIT_SECONDS = 0.5


@dataclass
class Tally:
    """The outcome of a sweep."""

    done: int = 0
    failed: list[Job] = field(default_factory=list)
    elsewhere: list[Job] = field(default_factory=list)  # run by another process
    signum: int | None = None  # the signal that stopped the sweep, if any


def finished(directory: Path, jobs: Sequence[Job], *, same_code: bool = False) -> dict[str, RunResult]:
    """Results of the jobs that are in the store, by key; with `same_code` only those of the present code.

    A line matches a job by its configuration. Fields that were added later take their defaults, which do not
    change a run.
    """
    wanted = {(job.method, config_hash(job.config)): job.key for job in jobs}
    found: dict[str, RunResult] = {}
    for suite in {job.suite for job in jobs}:
        for file in sorted((directory / suite).glob("*.jsonl")):
            for line in store.read_lines(file):
                if same_code and line.get("code") != code_version():
                    continue
                try:
                    name = (line["method"], config_hash(from_json(line["config"])))
                except MulvError:
                    continue  # of a configuration that no longer exists
                if name in wanted:
                    found[wanted[name]] = line
    return found


def grouped(jobs: Sequence[Job], most: int) -> list[tuple[Job, ...]]:
    """Groups of up to `most` jobs that differ only in their seed, in the order of their first jobs."""
    alike: dict[Job, list[Job]] = {}
    for job in jobs:
        alike.setdefault(replace(job, config=replace(job.config, seed=0)), []).append(job)
    groups = [seeds[at : at + most] for seeds in alike.values() for at in range(0, len(seeds), most)]
    place = {job: number for number, job in enumerate(jobs)}
    return [tuple(group) for group in sorted(groups, key=lambda group: place[group[0]])]


def run_sweep(
    groups: Sequence[tuple[Job, ...]],
    directory: Path,
    pool: Pool,
    board: Board,
    *,
    retries: int,
    interrupts: Interrupts,
) -> Tally:
    """Run the jobs, one process per group, until each is in the store or has failed.

    A failed job is retried up to `retries` times, in a process of its own.
    """
    waiting, running, tally = deque(groups), set[Job](), Tally()
    attempts: Counter[Job] = Counter()
    try:
        while (waiting or running) and not interrupts.pending:
            while waiting and pool.free():
                group = waiting.popleft()
                attempts.update(group)
                pool.start(group)
                running.update(group)
            for job, message in pool.events(WAIT_SECONDS):
                if "steps" in message:
                    board.progress(job, message)
                    continue
                running.remove(job)
                message = _keep(directory, message)
                if "result" in message:
                    pool.settled(message)
                    tally.done += 1
                    board.done(job, message["result"])
                elif message.get("busy"):
                    tally.elsewhere.append(job)
                    board.elsewhere(job, message["error"])
                else:
                    again = attempts[job] <= retries
                    record_failure(directory, job, message, attempts[job])
                    if again:
                        waiting.append((job,))
                    else:
                        tally.failed.append(job)
                    board.failed(job, message["error"], again)
            board.refresh()
        tally.signum = interrupts.signum
    finally:
        pool.close()
        board.close()
    return tally


def _keep(directory: Path, message: Message) -> Message:
    """Append a result to the store; if that fails, return an error message. The run's directory keeps it."""
    if "result" not in message:
        return message
    try:
        store.append(directory, message["result"])
    except (MulvError, OSError) as error:
        return {"error": str(error), "traceback": traceback.format_exc()}
    return message


def failures_file(directory: Path, suite: str) -> Path:
    return directory / suite / "runs" / "failures.jsonl"


def record_failure(directory: Path, job: Job, message: Message, attempt: int) -> None:
    """Write one line per failed attempt, with its traceback."""
    record = {
        "suite": job.suite,
        "method": job.method,
        "task": job.config.task,
        "seed": job.config.seed,
        "attempt": attempt,
        "at": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        "error": message["error"],
        "traceback": message["traceback"],
        "config_hash": config_hash(job.config),
        "code": code_version(),
        "commit": commit(),
    }
    file = failures_file(directory, job.suite)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("a") as opened:
            opened.write(json.dumps(record) + "\n")
    except OSError as error:  # a full disk must not stop the sweep
        print(f"mulv: {file} could not be written ({error}); {job} failed:", file=sys.stderr)
        print(message["traceback"], file=sys.stderr)
