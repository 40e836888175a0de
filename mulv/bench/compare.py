"""Finished runs side by side."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mulv.core.errors import MulvError
from mulv.run.config import differences

Result = dict[str, Any]


def read_results(runs: Sequence[Path]) -> list[Result]:
    """The result lines of run directories; what differs from the first run's options is named."""
    results = []
    for run in runs:
        file = run / "result.json"
        if not file.exists():
            raise MulvError(f"{run} holds no finished run: there is no {file}")
        results.append(json.loads(file.read_text()))
    if len({result["task"] for result in results}) > 1:
        raise MulvError("these runs are of different tasks; compare those of one")
    first = results[0]
    for result in results[1:]:
        changes = [line.partition(": ") for line in differences(first["config"], result["config"])]
        told = [
            f"{name.removeprefix('agent.')} {text.rpartition(', ')[2].removesuffix(' now')}"
            for name, _, text in changes
            if name not in ("seed", "algo") and result["method"] == first["method"]
        ]
        result["method"] = "/".join([result["method"], *told])
    return results


def table(results: Sequence[Result]) -> list[str]:
    """A line a run, best first."""
    width = max(len(result["method"]) for result in results)
    lines = [f"{'method':{width}}  {'seed':>4}  {'steps':>9}  {'final return':>16}  {'minutes':>7}"]
    for result in sorted(results, key=lambda r: -r["final_mean"]):
        last = np.asarray(result["eval_returns"][-1])
        final = f"{last.mean():.1f} ± {last.std():.1f}"
        lines.append(
            f"{result['method']:{width}}  {result['seed']:4d}  {result['env_steps']:9,d}  {final:>16}  "
            f"{result['wall_s'] / 60:7.1f}"
        )
    return lines
