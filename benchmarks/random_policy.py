"""What uniform actions reach: the zero of scores.

Writes results/random/random.jsonl, and its means to the package's data.
"""

import csv
import json
from pathlib import Path

import numpy as np
from keeping import COMMIT
from tqdm import tqdm

from mulv.envs import TASKS, VectorEnv, make_env
from mulv.run.directory import versions

ROOT = Path(__file__).parents[1]
# What an agent sees does not matter to uniform actions: each task's full observation has the same returns.
MASKED = [name for name in TASKS if name.endswith(("-P", "-P-mbbl"))]
EPISODES = 20


def returns(task: str) -> list[float]:
    """The first episode of each lane, in the order of their seeds."""
    lanes = VectorEnv.of(lambda: make_env(task), EPISODES, lambda lane, episode: 1000 * episode + lane)
    rng = np.random.default_rng(0)
    lanes.start()
    first: dict[int, float] = {}
    while len(first) < EPISODES:
        lanes.step(lanes.random_actions(rng))
        for episode in lanes.finished:
            first.setdefault(episode.lane, episode.ret)
        lanes.finished.clear()
    lanes.close()
    return [first[lane] for lane in range(EPISODES)]


def main() -> None:
    made = {"commit": COMMIT, "versions": versions()}
    found = {task: returns(task) for task in tqdm(MASKED, desc="tasks")}
    out = ROOT / "results" / "random" / "random.jsonl"
    out.parent.mkdir(parents=True, exist_ok=True)
    with out.open("w") as file:
        for task, values in found.items():
            line = {"task": task, "method": "random", "seed": 0, "returns": values, **made}
            file.write(json.dumps(line) + "\n")
            print(f"{task:20} {np.mean(values):10.1f}")
    with (ROOT / "mulv" / "bench" / "data" / "random.csv").open("w", newline="") as file:
        file.write(
            f"# Mean return of {EPISODES} episodes of uniform actions (benchmarks/random_policy.py).\n"
        )
        table = csv.writer(file, lineterminator="\n")
        table.writerow(["task", "return"])
        table.writerows([task, round(float(np.mean(values)), 3)] for task, values in found.items())


if __name__ == "__main__":
    main()
