"""The sweep's side of a process with runs in it: starts `child.py`, hears its messages, ends it."""

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

ROOT = Path(__file__).resolve().parents[2]  # what this mulv was imported from
ENOUGH = 4000  # characters of what a crashed process said last


class Child:
    """Runs in a process of their own, which ends when this one does; mostly it is one run."""

    def __init__(self, jobs: Sequence[dict[str, Any]], runs: Path, threads: int):
        self._said = tempfile.TemporaryFile()  # noqa: SIM115, it lives as long as the process
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "mulv.bench.child"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._said,
            env=_environment(threads),
            start_new_session=True,  # a Ctrl-C is for the sweep, which then ends its runs
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._output = self._process.stdout
        self._rest = b""
        self._unanswered = set(range(len(jobs)))
        self._last: tuple[int, Message] | None = None
        self.ended = False
        request = {"jobs": [*jobs], "runs": str(runs.absolute()), "threads": threads}
        with contextlib.suppress(BrokenPipeError):  # it has died already, which `read` will tell
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            self._process.stdin.flush()

    def fileno(self) -> int:
        """For selectors: readable when there is something to `read`."""
        return self._output.fileno()

    @property
    def pid(self) -> int:
        return self._process.pid

    def read(self) -> list[tuple[int, Message]]:
        """What came in since, waiting for it, each with the number of its job.

        A job's last message has a result or an error; the very last is held back until the process is gone.
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
        """End it at once, with all its processes; its checkpoints stay."""
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
    """Libraries that choose their number of threads when they are loaded are told it before.

    The code is that of this process, also where another work tree of it is the present directory.
    """
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    return {**os.environ, **{name: str(threads) for name in names}, "PYTHONPATH": path}
