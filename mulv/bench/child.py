"""A process of a sweep with one run, or several seeds: python -m mulv.bench.child

It reads a request from stdin, one line of JSON, and writes messages to stdout, one line of JSON each:
    {"steps": 1500, "from": 0, "return": -310.5}  the run's step, and the step at which this process began
    {"result": {…}, "directory": "…"}             the result line; the run's last message
    {"error": "…", "traceback": "…"}              the last message of a failed run; "busy" if another runs it
each with "job", the run's number in the request. Several jobs differ only in their seed and share a `vmap`.
When stdin ends, the parent process is gone, and this one stops at once. A later sweep resumes the run from
its last checkpoint; that is at an episode's end, so the run equals one that was never stopped.
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
    """Sends the sweep messages on a run's progress, and its result or error at the end."""

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
        """Send nothing: the sweep counts steps."""

    def evaluated(self, evaluation: "Evaluation") -> None:
        """Send nothing: evaluations are part of the result."""

    def close(self) -> None:
        """Send nothing: the result or the error follows."""

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
    """A job with the path of its run and its reporter."""

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
                "state_sha256": sums.split()[0],  # of the agent's arrays, for comparing runs bit for bit
            }
            self.reporter.finished(read_result(self.path) | more, self.path)
        except Exception as error:
            self.reporter.failed(error)


def run_all(runs: Sequence[JobRun]) -> None:
    """Train each run from the start or its last checkpoint and report it; finished ones are only reported."""
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
    """Read one request from stdin and run its jobs."""
    faulthandler.enable()
    messages = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # so that what libraries print does not mix with messages
    request = json.loads(sys.stdin.buffer.readline())
    reporters = [Reporter(messages, number) for number in range(len(request["jobs"]))]
    threading.Thread(target=_end_with_parent, daemon=True).start()
    pin_to_free_cores(request["threads"])
    try:
        # Before XLA and BLAS are imported, which start one thread per available core.
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
