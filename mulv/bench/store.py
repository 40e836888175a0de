"""The store of finished runs: files <directory>/<suite>/<method>.jsonl, to which result lines are appended.

`results/` in the repository is such a store. There is no index, because reading all lines is fast enough.
"""

import errno
import fcntl
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from mulv.bench.lines import parse_line, read_result
from mulv.core.errors import MulvError
from mulv.run.result import RunResult

if TYPE_CHECKING:
    import pandas as pd

REFERENCES = {"random", "speed"}  # folders of a store whose lines are not runs
RUN_LOGS = {"metrics.jsonl", "evaluations.jsonl"}  # files of a run directory, which is not a store
# Columns of the frame: the run, the results of an evaluation, commit and versions.
_RUN = ["suite", "method", "task", "seed"]
_FOUND = ["env_steps", "return_mean", "return_std", "episodes", "success", "final"]
COLUMNS = [*_RUN, *_FOUND, "final_mean", "updates", "config_hash", "commit", "code", "wall_s"]


def read_store(directory: Path) -> list[RunResult]:
    """All finished runs of a store; a damaged line is an error that names its file and number."""
    if not directory.is_dir():
        raise MulvError(f"{directory} is not a store of results: there is no such directory")
    return [line for file in _files(directory) for line in read_lines(file)]


def _files(directory: Path) -> list[Path]:
    found = sorted(directory.glob("*/*.jsonl"))
    return [file for file in found if file.parent.name not in REFERENCES and file.name not in RUN_LOGS]


def find_runs(directory: Path) -> list[RunResult]:
    """The runs of a store, or of all run directories below; an error if there is none."""
    if not directory.is_dir():
        raise MulvError(f"{directory} is not a directory of results")
    alone = [] if _files(directory) else sorted(directory.rglob("result.json"))
    runs = read_store(directory) + [read_result(file.parent) for file in alone]
    if not runs:
        raise MulvError(f"{directory} holds no finished run: no result.json, no <suite>/<method>.jsonl")
    return runs


def read_lines(file: Path) -> Iterator[RunResult]:
    """The runs of one file. A last line without line break is incomplete (after a crash) and is skipped."""
    *whole, rest = file.read_bytes().split(b"\n")
    for number, raw in enumerate([*whole, rest] if _is_line(rest) else whole, 1):
        yield parse_line(raw, f"{file}:{number}")


def append(directory: Path, result: RunResult) -> bool:
    """Append a finished run, atomically and synced to disk; False if the store already has it."""
    file = directory / result["suite"] / f"{result['method'].replace('/', '-')}.jsonl"
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a+b") as opened:
        fcntl.flock(opened, fcntl.LOCK_EX)  # released by the kernel however this process ends
        end = _mend(opened, file)
        if any(identity(line) == identity(result) for line in read_lines(file)):
            return False
        try:
            opened.write(json.dumps(result).encode() + b"\n")
            opened.flush()
            os.fsync(opened.fileno())
        except OSError as error:
            os.ftruncate(opened.fileno(), end)
            if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
                raise
            raise MulvError(f"the disk is full: {file} could not take another result") from error
    return True


def identity(result: RunResult) -> tuple[Any, ...]:
    """A key that is equal for two lines of the same run."""
    return (result["method"], result["task"], result["seed"], result.get("config_hash"), result.get("code"))


def load(directory: Path | str) -> "pd.DataFrame":
    """A store as a DataFrame with one row per run and evaluation; `final` marks a run's last one."""
    import pandas as pd

    rows = [row for result in read_store(Path(directory)) for row in _rows(result)]
    return pd.DataFrame(rows, columns=COLUMNS)


def _rows(result: RunResult) -> Iterator[dict[str, Any]]:
    steps, returns, success = result["eval_env_steps"], result["eval_returns"], result.get("eval_success")
    run = {name: result.get(name) for name in COLUMNS}
    for number, (at, episodes) in enumerate(zip(steps, returns, strict=True)):
        yield run | {
            "env_steps": at,
            "return_mean": float(np.mean(episodes)),
            "return_std": float(np.std(episodes)),
            "episodes": len(episodes),
            "success": float(np.mean(success[number])) if success else np.nan,
            "final": number == len(steps) - 1,
        }


def _is_line(raw: bytes) -> bool:
    try:
        return isinstance(json.loads(raw), dict)
    except ValueError:
        return False


def _mend(opened: IO[bytes], file: Path) -> int:
    """Repair a last line without line break, and return the position for the next line.

    A complete line (an editor removed its line break) gets it back. An incomplete line (after a crash) is
    removed: its run is not in the store, so the sweep adds it again.
    """
    opened.seek(0)
    rest = opened.read().rpartition(b"\n")[2]
    if _is_line(rest):
        opened.write(b"\n")
        opened.flush()
    elif rest:
        print(f"mulv: {file} ended in half a line, left by a crash: dropped", file=sys.stderr)
        opened.truncate(os.fstat(opened.fileno()).st_size - len(rest))
    return os.fstat(opened.fileno()).st_size
