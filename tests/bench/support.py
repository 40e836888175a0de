"""Result lines for tests."""

import json
from pathlib import Path
from typing import Any

VERSIONS = {"python": "3.11.7", "mulv": "0.1.0", "jax": "0.10.2"}


def result(
    method: str = "mulv",
    task: str = "HalfCheetah-P",
    seed: int = 0,
    *,
    final: float = 100.0,
    steps: int = 1000,
    evaluations: int = 4,
    **fields: Any,
) -> dict[str, Any]:
    """A run whose mean return grows in equal parts from nothing to `final`."""
    at = [steps * (i + 1) // evaluations for i in range(evaluations)]
    return {
        "suite": "trial",
        "method": method,
        "task": task,
        "seed": seed,
        "env_steps": steps,
        "updates": steps,
        "eval_env_steps": at,
        "eval_returns": [
            [final * (i + 1) / evaluations + e for e in (-1.0, 1.0)] for i in range(evaluations)
        ],
        "eval_success": None,
        "final_mean": final,
        "config": {"seed": seed, "task": task, "algo": method, "agent": {"window": 3}},
        "config_hash": "0123456789ab",
        "commit": "a" * 40,
        "versions": VERSIONS,
        "wall_s": 60.0,
    } | fields


def write_store(root: Path, *results: dict[str, Any]) -> Path:
    """A results tree of them."""
    for line in results:
        file = root / line["suite"].replace("/", "-") / f"{line['method'].replace('/', '-')}.jsonl"
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("a") as out:
            out.write(json.dumps(line) + "\n")
    return root
