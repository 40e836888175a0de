"""What uniform actions reach: the zero of the scores in summary.py. Writes results/random/random.jsonl."""

import json
from pathlib import Path

import numpy as np

from mulv.envs import Lanes, make_env
from mulv.run.directory import commit, versions

TASKS = ("HalfCheetah-P", "Hopper-P", "Walker-P", "Ant-P", "Pendulum-P")
EPISODES = 20


def returns(task: str) -> list[float]:
    """The first episode of each lane, in the order of their seeds."""
    lanes = Lanes.of(lambda: make_env(task), EPISODES, lambda lane, episode: 1000 * episode + lane)
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
    out = Path(__file__).parents[1] / "results" / "random" / "random.jsonl"
    made = {"commit": commit(), "versions": versions()}
    found = {task: returns(task) for task in TASKS}
    out.parent.mkdir(parents=True, exist_ok=True)
    with out.open("w") as file:
        for task, values in found.items():
            line = {"task": task, "method": "random", "seed": 0, "returns": values, **made}
            file.write(json.dumps(line) + "\n")
            print(f"{task:16} {np.mean(values):10.1f}")


if __name__ == "__main__":
    main()
