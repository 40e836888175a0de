"""A table that compares finished runs."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mulv.bench.lines import length_of, read_result
from mulv.bench.runs import changed_options
from mulv.core.errors import MulvError
from mulv.run.result import RunResult


def read_results(runs: Sequence[Path]) -> list[RunResult]:
    """The result lines of run directories; runs of one algorithm are named by the options that differ."""
    if not runs:
        raise MulvError("there is nothing to compare; give run directories, such as runs/*/*/seed-0")
    results = [_read(run) for run in runs]
    if len({result["task"] for result in results}) > 1:
        raise MulvError("these runs are of different tasks; compare those of one")
    if len({length_of(result)[1] for result in results}) > 1:
        raise MulvError("some of these runs learned from data and some from steps; compare those of one kind")
    firsts: dict[str, dict[str, Any]] = {}
    for result in results:
        first = firsts.setdefault(result["method"], result["config"])
        result["method"] = "/".join([result["method"], *changed_options(first, result["config"])])
    return results


def _read(run: Path) -> RunResult:
    result = read_result(run)
    if not result["eval_returns"]:
        raise MulvError(f"{run} was never evaluated; there is nothing to compare")
    return result


def table(results: Sequence[RunResult]) -> list[str]:
    """One line per run, best first."""
    width = max(len(result["method"]) for result in results)
    lines = [f"{'method':{width}}  {'seed':>4}  {'steps':>9}  {'final return':>16}  {'minutes':>7}"]
    for result in sorted(results, key=lambda r: -np.mean(r["eval_returns"][-1])):
        last = np.asarray(result["eval_returns"][-1])
        final = f"{last.mean():.1f} ± {last.std():.1f}"
        lines.append(
            f"{result['method']:{width}}  {result['seed']:4d}  {length_of(result)[0]:9,d}  {final:>16}  "
            f"{result['wall_s'] / 60:7.1f}"
        )
    return lines
