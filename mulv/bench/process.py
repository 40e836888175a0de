"""The sweep's side of a process with runs: starts `child.py`, reads its messages, ends it."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

Message = dict[str, Any]

ROOT = Path(__file__).resolve().parents[2]  # the directory that mulv was imported from
ENOUGH = 4000  # characters of a crashed process's output that are reported


class Child:
    """A process with one run, or several seeds; it ends when this process ends."""

    def __init__(self, jobs: Sequence[dict[str, Any]], runs: Path, threads: int):
        self._said = tempfile.TemporaryFile()  # noqa: SIM115, it lives as long as the process
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "mulv.bench.child"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._said,
            env=_environment(threads),
            start_new_session=True,  # so that Ctrl-C reaches only the sweep, which then ends its runs
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._output = self._process.stdout
        self._rest = b""
        self._unanswered = set(range(len(jobs)))
        self._last: tuple[int, Message] | None = None
        self.ended = False
        request = {"jobs": [*jobs], "runs": str(runs.absolute()), "threads": threads}
        with contextlib.suppress(BrokenPipeError):  # it has died already, which `read` reports
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            self._process.stdin.flush()

    def fileno(self) -> int:
        """For selectors: the file is readable when there is something to `read`."""
        return self._output.fileno()

    @property
    def pid(self) -> int:
        return self._process.pid

    def read(self) -> list[tuple[int, Message]]:
        """Wait for new messages and return them, each with the number of its job.

        A job's last message has a result or an error; the last one of all is returned only after the process
        has ended.
        """
        chunk = os.read(self.fileno(), 1 << 16)
        if not chunk:
            return self._answers_at_the_end()
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        messages = []
        for message in map(json.loads, lines):
            number = message.pop("job")
            if "steps" not in message:
                self._unanswered.remove(number)
                if not self._unanswered:
                    self._last = number, message
                    continue
            messages.append((number, message))
        return messages

    def kill(self) -> None:
        """Kill the process and its children; checkpoints stay."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._close()

    def _answers_at_the_end(self) -> list[tuple[int, Message]]:
        code, self.ended = self._close(), True
        if self._last is not None:
            return [self._last]
        how = f"killed by {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
        error = f"the process of the run ended without an answer ({how})"
        return [(number, {"error": error, "traceback": self._tail}) for number in sorted(self._unanswered)]

    def _close(self) -> int:
        for pipe in (self._process.stdin, self._process.stdout):
            with contextlib.suppress(BrokenPipeError):
                pipe.close()  # type: ignore[union-attr]
        code = self._process.wait()
        size = self._said.seek(0, os.SEEK_END)
        self._said.seek(max(0, size - ENOUGH))
        self._tail = self._said.read().decode(errors="replace")
        self._said.close()
        return code


def _environment(threads: int) -> dict[str, str]:
    """Environment variables that set the number of threads, which libraries read when they are loaded.

    They also make the process import the same code as this one, whatever the working directory is.
    """
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    return {**os.environ, **{name: str(threads) for name in names}, "PYTHONPATH": path}
