"""The sweep's side of a run: starts `child.py`, hears its messages, ends it."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

Message = dict[str, Any]

ENOUGH = 4000  # characters of what a crashed run said last


class Child:
    """A run in a process of its own, which ends when this one does."""

    def __init__(self, job: dict[str, Any], runs: Path, threads: int):
        self._said = tempfile.TemporaryFile()  # noqa: SIM115, it lives as long as the process
        self._process = subprocess.Popen(
            [sys.executable, "-m", "mulv.bench.child"],
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
        self._last: Message | None = None
        request = {"job": job, "runs": str(runs.absolute()), "threads": threads}
        with contextlib.suppress(BrokenPipeError):  # it has died already, which `read` will tell
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            self._process.stdin.flush()

    def fileno(self) -> int:
        """For selectors: readable when there is something to `read`."""
        return self._output.fileno()

    @property
    def pid(self) -> int:
        return self._process.pid

    def read(self) -> list[Message]:
        """What came in since, waiting for it; the last message has a result or an error."""
        chunk = os.read(self.fileno(), 1 << 16)
        if not chunk:
            return [self._ended()]
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        messages = [json.loads(line) for line in lines]
        if messages and "steps" not in messages[-1]:
            self._last = messages.pop()  # said once the process is gone and the run's directory free again
        return messages

    def kill(self) -> None:
        """End it at once, with all its processes; its checkpoints stay."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._close()

    def _ended(self) -> Message:
        code = self._close()
        if self._last is not None:
            return self._last
        how = f"killed by {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
        return {"error": f"the process of the run ended without an answer ({how})", "traceback": self._tail}

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
    """Libraries that choose their number of threads when they are loaded are told it before."""
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    return {**os.environ, **{name: str(threads) for name in names}}
