"""Runs of a sweep in a process of their own, mostly one: python -m mulv.bench.child

It reads a request from stdin, a line of JSON, and writes what happens to stdout, a line of JSON each:
    {"steps": 1500, "from": 0, "return": -310.5}  how far a run is, from where this process took it up
    {"result": {…}, "directory": "…"}             the result line; the run's last message
    {"error": "…", "traceback": "…"}              what went wrong instead; "busy" where another runs it
each with "job", its number in the request. Several jobs differ in nothing but the seed, and train together.
When stdin ends, whoever started it is gone, and it stops at once: a later sweep takes the run up at its last
checkpoint, which lies at an episode's end, so that it equals a run that was never stopped.
"""

import faulthandler
import json
import os
import shutil
import sys
import threading
import time
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from mulv.bench.cores import pin_to_free_cores
from mulv.bench.lines import read_result
from mulv.core.errors import BusyError, CheckpointError, MulvError

if TYPE_CHECKING:
    from mulv.bench.suite import Job
    from mulv.run.evaluation import Evaluation
    from mulv.run.vmap_seeds import Member

REPORT_SECONDS = 1.0


class Reporter:
    """Tells the sweep how far a run is, now and then, and what it came to."""

    def __init__(self, messages: IO[str], number: int):
        self._messages, self._number, self._start, self._next = messages, number, 0, 0.0

    def begin(self, env_steps: int) -> None:
        self._start = env_steps
        self.step(env_steps, None)

    def step(self, env_steps: int, last_return: float | None) -> None:
        if time.monotonic() >= self._next:
            self._next = time.monotonic() + REPORT_SECONDS
            self._send(**{"steps": env_steps, "from": self._start, "return": last_return})

    def pretrained(self, updates: int, total: int) -> None:
        """Nothing to tell: the sweep counts steps."""

    def evaluated(self, evaluation: "Evaluation") -> None:
        """Nothing to tell: evaluations come with the result."""

    def close(self) -> None:
        """The result or the error follows."""

    def finished(self, result: dict[str, Any], directory: Path) -> None:
        self._send(result=result, directory=str(directory))

    def failed(self, error: Exception) -> None:
        if isinstance(error, BusyError):
            self._send(busy=True, error=str(error), traceback="")
        else:
            said = str(error) if isinstance(error, MulvError) else f"{type(error).__name__}: {error}"
            self._send(error=said, traceback="".join(traceback.format_exception(error)))

    def _send(self, **message: Any) -> None:
        self._messages.write(json.dumps({"job": self._number, **message}) + "\n")
        self._messages.flush()


class JobRun:
    """A job on its way: where its run is, and who is told of it."""

    def __init__(self, job: "Job", runs: Path, reporter: Reporter):
        from mulv.run import checkpoint
        from mulv.run.directory import code_version

        self.job, self.reporter = job, reporter
        name = f"seed-{job.config.seed}-{job.key[:8]}-{code_version()[:8]}"
        self.path = runs / job.method.replace("/", "-") / job.config.task.replace("/", "-") / name
        saved = checkpoint.saved_steps(self.path / "checkpoints")
        reporter.begin(saved[-1] if saved else 0)

    @property
    def finished(self) -> bool:
        return (self.path / "result.json").exists()

    def member(self) -> "Member":
        from mulv.run.directory import RunDirectory
        from mulv.run.vmap_seeds import Member

        resume = RunDirectory(self.path).config_file.exists()
        return Member(self.job.config, self.path, resume, self.reporter)

    def report(self) -> None:
        """Send the result line of the finished run."""
        from mulv.run import checkpoint
        from mulv.run.directory import code_version

        try:
            last = checkpoint.saved_steps(self.path / "checkpoints")[-1]
            sums = (self.path / "checkpoints" / f"{last:010d}" / "SHA256SUMS").read_text()
            more = {
                "suite": self.job.suite,
                "method": self.job.method,
                "code": code_version(),
                "threads": _threads(),
                "state_sha256": sums.split()[0],  # of the agent's arrays: equal bit for bit
            }
            self.reporter.finished(read_result(self.path) | more, self.path)
        except Exception as error:
            self.reporter.failed(error)


def run_all(runs: Sequence[JobRun]) -> None:
    """Train from the start, or from the last checkpoint, or not at all where a run is already finished."""
    from mulv.run.vmap_seeds import train_vmapped

    left = []
    for run in runs:
        if run.finished:
            run.report()
        else:
            left.append(run)
    while left:
        members = {run.member(): run for run in left}
        left = []
        try:
            for member, end in train_vmapped(list(members), save_on_signal=False):
                run = members[member]
                if isinstance(end, CheckpointError):
                    print(f"mulv: {end}; the run starts again", file=sys.stderr)
                    shutil.rmtree(run.path)
                    left.append(run)
                elif isinstance(end, Exception):
                    run.reporter.failed(end)
                else:
                    run.report()
                del members[member]
        except Exception as error:
            for run in members.values():
                run.reporter.failed(error)


def main() -> None:
    """Serve one request."""
    faulthandler.enable()
    messages = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print is no message
    request = json.loads(sys.stdin.buffer.readline())
    reporters = [Reporter(messages, number) for number in range(len(request["jobs"]))]
    threading.Thread(target=_end_with_parent, daemon=True).start()
    pin_to_free_cores(request["threads"])
    try:
        # Only now, because XLA and BLAS make as many threads as they may use cores when they are loaded.
        from mulv.bench.suite import Job
        from mulv.run.runtime import use_compilation_cache

        use_compilation_cache()
        jobs = map(Job.from_json, request["jobs"])
        runs = [JobRun(job, Path(request["runs"]), r) for job, r in zip(jobs, reporters, strict=True)]
    except Exception as error:
        for reporter in reporters:
            reporter.failed(error)
    else:
        run_all(runs)


def _end_with_parent() -> None:
    while os.read(0, 1):  # not sys.stdin, whose lock would be held when the interpreter ends
        pass
    os._exit(1)


def _threads() -> int | None:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None


if __name__ == "__main__":
    main()
