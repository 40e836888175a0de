"""What a sweep costs beside the runs it consists of, and how fast its store opens.

    python benchmarks/sweep.py                           four runs of about a minute, both ways
    python benchmarks/sweep.py --steps 400 --runs 1      only to see that it works

Everything is kept on one core: the sweep and its run share it, so that nothing the sweep does is hidden on
another. Writes results/speed/sweep.json and prints the figures as one JSON object, its last line.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from keeping import keep

from mulv.bench.store import append, load
from mulv.bench.suite import Job, Method, Suite, read_suite
from mulv.run.directory import commit, versions

BARE = """
import json, sys
from pathlib import Path
from mulv.run.config import from_json
from mulv.run.runtime import use_compilation_cache
from mulv.run.train import train
use_compilation_cache()
train(from_json(json.loads(sys.argv[1])), Path(sys.argv[2]), progress=False)
"""


def timed(*command: str | Path) -> float:
    """Seconds of a process."""
    start = time.perf_counter()
    subprocess.run([sys.executable, *map(str, command)], check=True, capture_output=True)
    return time.perf_counter() - start


def suite(steps: int, runs: int) -> dict[str, Any]:
    """SAC on HalfCheetah-P, which makes about a hundred steps a second on one core."""
    options = {"learning_starts": 200, "eval_every": steps}
    return {
        "tasks": ["HalfCheetah-P"],
        "methods": {"sac": {"algo": "sac"}},
        "seeds": runs,
        "steps": steps,
        "options": options,
    }


def overhead(steps: int, runs: int) -> dict[str, float]:
    """Time of a sweep over that of the same runs, each started by itself."""
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        file = root / "minute.json"
        file.write_text(json.dumps(suite(steps, runs)))
        jobs = read_suite(file).jobs()
        timed("-c", BARE, _text(jobs[0]), root / "warm-up")  # compiled once, as for everything that follows
        bare = [timed("-c", BARE, _text(job), root / str(n)) for n, job in enumerate(jobs)]
        swept = timed("-m", "mulv", "bench", file, "--out", root / "store", "--workers", "1")
        assert len(load(root / "store").query("final")) == runs
    return {
        "sweep_overhead": round(swept / sum(bare) - 1, 4),
        "sweep_s": round(swept, 1),
        "bare_s": round(sum(bare), 1),
        "runs": runs,
        "steps": steps,
    }


def _text(job: Job) -> str:
    return json.dumps(job.to_json()["config"])


def store_open(runs: int = 200, evaluations: int = 20, episodes: int = 10) -> dict[str, float]:
    """Seconds until a store of many runs is a frame, in this process and in a new one."""
    returns = [[float(1000 * e + i) / 7 for i in range(episodes)] for e in range(evaluations)]
    job = Suite("many", "", ("HalfCheetah-P",), {"sac": Method("sac")}, 1000, (0,)).jobs()[0]
    code = {"commit": commit(), "versions": versions()}
    with tempfile.TemporaryDirectory() as root:
        for seed in range(runs):
            line = {"suite": "many", "method": f"method-{seed % 5}", "task": "HalfCheetah-P", "seed": seed}
            line |= {"env_steps": 1000, "updates": 1000, "eval_env_steps": list(range(evaluations))}
            line |= {"eval_returns": returns, "eval_success": None, "final_mean": returns[-1][0]}
            line |= {"config": job.to_json()["config"], "config_hash": f"{seed}", "wall_s": 60.0}
            line |= code
            append(Path(root), line)
        load(root)  # imports pandas
        start = time.perf_counter()
        assert load(root)["seed"].nunique() == runs
        seconds = time.perf_counter() - start
        cold = timed("-c", "import sys, mulv.bench; mulv.bench.load(sys.argv[1])", root)
    return {
        "store_open_s": round(seconds, 3),
        "store_open_new_process_s": round(cold, 2),
        "stored_runs": runs,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=6000, help="environment steps of a run")
    parser.add_argument("--runs", type=int, default=4, help="runs of the sweep")
    options = parser.parse_args()
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})  # all that is started inherits it
    figures: dict[str, Any] = {**store_open(), **overhead(options.steps, options.runs)}
    print(json.dumps(keep("sweep", figures)))


if __name__ == "__main__":
    main()
