"""One run of a sweep, in a process of its own: python -m mulv.bench.child

It reads a request from stdin, a line of JSON, and writes what happens to stdout, a line of JSON each:
    {"steps": 1500, "from": 0, "return": -310.5}  how far it is, from where this process took it up
    {"result": {…}, "directory": "…"}             the result line; the last message
    {"error": "…", "traceback": "…"}              what went wrong instead; "busy" where another runs it
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
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from mulv.bench.cores import pin_to_free_cores
from mulv.core.errors import BusyError, CheckpointError, MulvError

if TYPE_CHECKING:
    from mulv.bench.suite import Job
    from mulv.run.evaluation import Evaluation

REPORT_SECONDS = 1.0


class Reporter:
    """Tells the sweep how far the run is, now and then."""

    def __init__(self, messages: IO[str]):
        self._messages, self._start, self._next = messages, 0, 0.0

    def send(self, **message: Any) -> None:
        self._messages.write(json.dumps(message) + "\n")
        self._messages.flush()

    def begin(self, env_steps: int) -> None:
        self._start = env_steps
        self.step(env_steps, None)

    def step(self, env_steps: int, last_return: float | None) -> None:
        if time.monotonic() >= self._next:
            self._next = time.monotonic() + REPORT_SECONDS
            self.send(**{"steps": env_steps, "from": self._start, "return": last_return})

    def evaluated(self, evaluation: "Evaluation") -> None:
        """Nothing to tell: evaluations come with the result."""

    def close(self) -> None:
        """The result or the error follows."""


def run_job(job: "Job", runs: Path, reporter: Reporter) -> tuple[dict[str, Any], Path]:
    """Train from the start, or from the last checkpoint, or not at all where the run is already finished."""
    from mulv.run import checkpoint
    from mulv.run.directory import RunDirectory, code_version
    from mulv.run.train import train

    name = f"seed-{job.config.seed}-{job.key[:8]}-{code_version()[:8]}"
    path = runs / job.method.replace("/", "-") / job.config.task.replace("/", "-") / name
    finished = path / "result.json"
    saved = checkpoint.saved_steps(path / "checkpoints")
    reporter.begin(saved[-1] if saved else 0)
    if not finished.exists():
        resume = RunDirectory(path).config_file.exists()
        try:
            train(job.config, path, resume=resume, progress=reporter, save_on_signal=False)
        except CheckpointError as error:
            print(f"mulv: {error}; the run starts again", file=sys.stderr)
            shutil.rmtree(path)
            train(job.config, path, progress=reporter, save_on_signal=False)
    last = path / "checkpoints" / f"{checkpoint.saved_steps(path / 'checkpoints')[-1]:010d}"
    more = {
        "suite": job.suite,
        "method": job.method,
        "code": code_version(),
        "threads": _threads(),
        "state_sha256": (last / "SHA256SUMS")
        .read_text()
        .split()[0],  # of the agent's arrays: equal bit for bit
    }
    return json.loads(finished.read_text()) | more, path


def main() -> None:
    """Serve one request."""
    faulthandler.enable()
    messages = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print is no message
    reporter = Reporter(messages)
    request = json.loads(sys.stdin.buffer.readline())
    threading.Thread(target=_end_with_parent, daemon=True).start()
    pin_to_free_cores(request["threads"])
    try:
        # Only now, because XLA and BLAS make as many threads as they may use cores when they are loaded.
        from mulv.bench.suite import Job
        from mulv.run.runtime import use_compilation_cache

        use_compilation_cache()
        result, path = run_job(Job.from_json(request["job"]), Path(request["runs"]), reporter)
        reporter.send(result=result, directory=str(path))
    except BusyError as error:
        reporter.send(busy=True, error=str(error), traceback="")
    except Exception as error:
        said = str(error) if isinstance(error, MulvError) else f"{type(error).__name__}: {error}"
        reporter.send(error=said, traceback=traceback.format_exc())


def _end_with_parent() -> None:
    while os.read(0, 1):  # not sys.stdin, whose lock would be held when the interpreter ends
        pass
    os._exit(1)


def _threads() -> int | None:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None


if __name__ == "__main__":
    main()
