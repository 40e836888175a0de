"""How long `mulv report` takes for 200 runs: five methods, ten tasks, four seeds, made up.

    python benchmarks/report.py              measures; writes results/speed/report.json
    python benchmarks/report.py --keep DIR   only writes the made-up results, for a look at the page

Prints one JSON object as its last line.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from keeping import keep

from mulv.bench.published import PAPER_METHODS, paper_table, random_return
from mulv.run.directory import commit, versions

METHODS = [method for method in PAPER_METHODS.values() if method != "psr"]
SEEDS, EVALUATIONS, EPISODES, STEPS = 4, 20, 10, 200_000


def line(method: str, base: str, seed: int, rng: np.random.Generator) -> dict[str, Any]:
    """A run that rises from random actions to about the paper's return."""
    task = f"{base}-{'F' if method == 'lvrep' else 'P'}"
    start, published = random_return(task) or 0.0, paper_table()[base][method]
    end = rng.normal(published.mean, published.std)
    steps = np.linspace(0, STEPS, EVALUATIONS + 1)[1:]
    progress = 1 - np.exp(-3 * steps / STEPS)
    noise = rng.normal(0, 0.05 * abs(end - start), (EVALUATIONS, EPISODES))
    returns = start + (end - start) * progress[:, None] / progress[-1] + noise
    return {
        "suite": "made-up",
        "method": method,
        "task": task,
        "seed": seed,
        "env_steps": STEPS,
        "updates": STEPS,
        "eval_env_steps": [int(step) for step in steps],
        "eval_returns": returns.tolist(),
        "eval_success": None,
        "final_mean": float(returns[-1].mean()),
        "config": {"seed": seed, "task": task},
        "config_hash": f"{rng.integers(16**12):012x}",
        "commit": commit(),
        "versions": versions(),
        "wall_s": 3600.0,
    }


def make_up(root: Path) -> int:
    """Write the results; returns how many there are."""
    rng = np.random.default_rng(0)
    folder = root / "made-up"
    folder.mkdir(parents=True, exist_ok=True)
    for method in METHODS:
        lines = [line(method, base, seed, rng) for base in paper_table() for seed in range(SEEDS)]
        (folder / f"{method}.jsonl").write_text("".join(json.dumps(one) + "\n" for one in lines))
    return len(METHODS) * len(paper_table()) * SEEDS


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--keep", type=Path, help="write the made-up results here, and do nothing else")
    folder = parser.parse_args().keep
    if folder:
        print(make_up(folder))
        return
    with tempfile.TemporaryDirectory() as root:
        runs, page = make_up(Path(root)), Path(root) / "report.html"
        start = time.perf_counter()
        subprocess.run([sys.executable, "-m", "mulv", "report", root, "--out", str(page)], check=True)
        figures = {
            "report_runs": runs,
            "report_s": round(time.perf_counter() - start, 1),
            "report_mb": round(page.stat().st_size / 1e6, 2),
        }
    print(json.dumps(keep("report", figures)))


if __name__ == "__main__":
    main()
