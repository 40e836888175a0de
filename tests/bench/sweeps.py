"""What the tests of sweeps share: a suite of tiny runs, and what makes two stores equal."""

import json
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil

from mulv.bench.store import read_store
from tests.run.support import kill, start

OPTIONS = {
    "window": 2,
    "batch_size": 8,
    "trunk.width": 16,
    "trunk.depth": 1,
    "learning_starts": 100,
    "update_every": 4,
    "eval_every": 400,
    "eval_episodes": 2,
    "log_every": 50,
    "checkpoint_every": 200,  # an episode of Pendulum, so that checkpoints fall on episode ends
}
SAC = {"algo": "sac"}
VARIANTS = {"sac": SAC, "sac/n-step-2": {"algo": "sac", "options": {"n_step": 2}}}


def write_suite(directory: Path, **changes: Any) -> Path:
    """A suite file: two methods on Pendulum-P."""
    suite = {"tasks": ["Pendulum-P"], "methods": VARIANTS, "seeds": 2, "steps": 800, "options": OPTIONS}
    path = directory / "tiny.json"
    path.write_text(json.dumps({**suite, **changes}))
    return path


def outcomes(store: Path) -> dict[tuple[str, str, int], tuple[Any, ...]]:
    """Everything of the runs that does not depend on the clock; fails where a run is there twice."""
    lines = read_store(store)
    found = {}
    for line in lines:
        bits = (line["state_sha256"], line["eval_returns"], line["eval_env_steps"], line["updates"])
        found[line["method"], line["task"], line["seed"]] = (*bits, line["config"])
    assert len(found) == len(lines)
    return found


def failures(store: Path) -> list[dict[str, Any]]:
    """The failed attempts that were recorded."""
    file = store / "tiny" / "runs" / "failures.jsonl"
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def start_bench(suite: Path, store: Path, *more: str | Path) -> subprocess.Popen[str]:
    return start("bench", suite, "--out", store, *more)


def runs_of(process: subprocess.Popen[str]) -> list[psutil.Process]:
    """The processes of a sweep's runs."""
    return processes_below(process.pid, "mulv.bench.child")


def processes_below(pid: int, command: str) -> list[psutil.Process]:
    """Descendants of a process whose command line holds `command`."""
    return [
        child for child in psutil.Process(pid).children(recursive=True) if command in _command_line(child)
    ]


def wait_until(true: Callable[[], Any], process: subprocess.Popen[str], timeout: float = 120) -> Any:
    """The first thing that `true` returns and is one; the process must live until then."""
    end = time.monotonic() + timeout
    while time.monotonic() < end:
        if found := true():
            return found
        assert process.poll() is None, process.communicate()
        time.sleep(0.01)
    kill(process)
    raise AssertionError("nothing happened")


def _command_line(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""
