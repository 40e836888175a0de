"""What the tests of runs share: tiny runs, and what makes two of them equal."""

import contextlib
import dataclasses
import json
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from mulv.agents.sac import SACConfig
from mulv.nets.trunk import TrunkConfig
from mulv.run import checkpoint
from mulv.run.config import RunConfig
from mulv.run.diagnostics.decodability import regression

TINY_AGENT = SACConfig(window=2, batch_size=8, trunk=TrunkConfig(width=16, depth=1))
ROOT = Path(__file__).parents[2]


def tiny(**changes: object) -> RunConfig:
    """Pendulum's episodes are 200 steps, so checkpoints every 200 fall on episode ends."""
    options = {
        "algo": "sac",
        "agent": TINY_AGENT,
        "total_steps": 1000,
        "learning_starts": 100,
        "update_every": 4,
        "eval_every": 400,
        "eval_episodes": 2,
        "log_every": 50,
        "checkpoint_every": 200,
    }
    return RunConfig(**{**options, **changes})  # type: ignore[arg-type]


TINY_FLAGS = """
    --algo sac --preset early --window 2 --batch-size 8 --trunk.width 16 --trunk.depth 1 --learning-starts 100
    --update-every 4
    --eval-every 400 --eval-episodes 2 --log-every 50 --checkpoint-every 200 --no-progress
""".split()  # noqa: SIM905


@contextlib.contextmanager
def small_regressions() -> Iterator[None]:
    """Networks of `mulv memory` that a test can wait for."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(regression, "TRUNK", dataclasses.replace(regression.TRUNK, width=64))
        patch.setattr(regression, "STATE", 32)
        patch.setattr(regression, "BATCH", 128)
        yield


def command(*arguments: str | Path) -> list[str]:
    return [sys.executable, "-m", "mulv", *map(str, arguments)]


def start(*arguments: str | Path) -> subprocess.Popen[str]:
    """`mulv …` in a process of its own."""
    return subprocess.Popen(command(*arguments), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finish(*arguments: str | Path, timeout: float = 180) -> subprocess.CompletedProcess[str]:
    """`mulv …` to its end."""
    return subprocess.run(command(*arguments), capture_output=True, text=True, timeout=timeout)


def wait_for(
    pattern: str, directory: Path, process: subprocess.Popen[str], timeout: float = 90, but: str = ""
) -> Path:
    """The first file below `directory` that matches, other than `but`; the process must live until then."""
    end = time.monotonic() + timeout
    while time.monotonic() < end:
        for path in directory.glob(pattern):
            if path.name != but and (
                checkpoint.ASIDE in pattern or not path.name.startswith(checkpoint.ASIDE)
            ):
                return path
        assert process.poll() is None, process.communicate()
        time.sleep(0.001)
    kill(process)
    raise AssertionError(f"no {pattern} in {directory}")


def fill(disk: Path) -> Path:
    """Leave no byte of a file system free; the file that takes them all."""
    ballast = disk / "ballast"
    with contextlib.suppress(OSError), ballast.open("wb", buffering=0) as file:
        while True:
            file.write(bytes(512))
    assert shutil.disk_usage(disk).free == 0
    return ballast


def kill(process: subprocess.Popen[str]) -> None:
    process.send_signal(signal.SIGKILL)
    process.communicate()


def fingerprint(run: Path) -> dict[str, object]:
    """Everything of a finished run that does not depend on the clock."""
    newest = sorted(p for p in (run / "checkpoints").iterdir() if p.name.isdigit())[-1]
    with np.load(newest / "arrays.npz") as arrays:
        parameters = {name: arrays[name].tobytes() for name in arrays.files}
    meta = json.loads((newest / "meta.json").read_text())
    return {
        "step": newest.name,
        "parameters": parameters,
        "replay": {p.name: p.read_bytes() for p in (run / "replay").glob("*.bin")},
        "metrics": list(_lines(run / "metrics.jsonl")),
        "evaluations": list(_lines(run / "evaluations.jsonl")),
        "meta": {k: v for k, v in meta.items() if k not in ("wall_s", "offsets")},
    }


def _lines(path: Path) -> Iterator[dict[str, object]]:
    for line in path.read_text().splitlines():
        yield {k: v for k, v in json.loads(line).items() if k != "time/fps"}
