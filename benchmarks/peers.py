"""SAC-MLP against what a user would pick instead: sbx's SAC and Stable-Baselines3's SAC, in one run.

All train on HalfCheetah-P seen through a window of four observations, width 256, batch 256, one update a step
on average, minutes apart; turns alternate, because machines are noisy. Every library is timed with both
schedules: an update after each step (the peers' default), and eight updates after eight steps (ours).
A ratio is our default over the faster of the peer's two. Each turn is a process of its own that trains end to
end (environment, replay, updates) and reports its steady rate.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from tqdm import tqdm

TASK, WINDOW, WIDTH, BATCH, WARM_UP = "HalfCheetah-P", 4, 256, 256, 1000
LIBRARIES, SCHEDULES = ("mulv", "sbx", "sb3"), (1, 8)
DEFAULT = 8  # mulv's own
LEAD = 304  # steps after the warm-up that are not timed: compilation


def time_mulv(steps: int, every: int) -> float:
    from mulv.agents.sac import SACConfig
    from mulv.nets.trunk import TrunkConfig
    from mulv.run.config import RunConfig
    from mulv.run.loop import Trainer
    from mulv.run.train import train

    marks: list[float] = []

    class Watched(Trainer):
        def receive(self) -> None:
            super().receive()
            if self.counters.env_steps in (WARM_UP + LEAD, WARM_UP + LEAD + steps):
                marks.append(time.perf_counter())

    import mulv.run.session as module

    module.Trainer = Watched  # type: ignore[misc]
    config = RunConfig(
        task=TASK,
        algo="sac",
        agent=SACConfig(window=WINDOW, batch_size=BATCH, trunk=TrunkConfig("mlp", WIDTH, 2)),
        total_steps=WARM_UP + LEAD + steps + 1,
        learning_starts=WARM_UP,
        update_every=every,
        eval_every=0,
        checkpoint_every=10**9,
    )
    with tempfile.TemporaryDirectory() as directory:
        train(config, Path(directory) / "run", progress=False)
    return steps / (marks[1] - marks[0])


def time_peer(library: str, steps: int, every: int) -> float:
    import gymnasium as gym
    from stable_baselines3.common.callbacks import BaseCallback

    from mulv.envs import make_env

    if library == "sbx":
        from sbx import SAC
    else:
        import torch
        from stable_baselines3 import SAC

        torch.set_num_threads(len(os.sched_getaffinity(0)))

    class Marks(BaseCallback):
        def __init__(self) -> None:
            super().__init__()
            self.at: list[float] = []

        def _on_step(self) -> bool:
            if self.num_timesteps in (WARM_UP + LEAD, WARM_UP + LEAD + steps):
                self.at.append(time.perf_counter())
            return True

    env = gym.wrappers.FlattenObservation(gym.wrappers.FrameStackObservation(make_env(TASK), WINDOW))
    marks = Marks()
    model = SAC(
        "MlpPolicy",
        env,
        learning_starts=WARM_UP,
        batch_size=BATCH,
        train_freq=every,
        gradient_steps=every,
        policy_kwargs={"net_arch": [WIDTH, WIDTH]},
        seed=0,
    )
    model.learn(WARM_UP + LEAD + steps + 1, callback=marks)
    return steps / (marks.at[1] - marks.at[0])


def measure(turns: int, steps: int) -> dict[str, Any]:
    """Median rates and their ratios."""
    order = [(library, every) for _ in range(turns) for library in LIBRARIES for every in SCHEDULES]
    rates: dict[tuple[str, int], list[float]] = {turn: [] for turn in order}
    for library, every in tqdm(order, desc="SAC, turns"):
        command = [sys.executable, __file__, library, str(steps), str(every)]
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=900)
        rates[library, every].append(round(float(done.stdout.split()[-1]), 1))
    typical = {turn: statistics.median(values) for turn, values in rates.items()}
    fastest = {library: max(typical[library, every] for every in SCHEDULES) for library in LIBRARIES}
    return {
        "sac_over_sbx": round(typical["mulv", DEFAULT] / fastest["sbx"], 2),
        "sac_over_sb3": round(typical["mulv", DEFAULT] / fastest["sb3"], 2),
        "sac_env_steps_per_s": typical["mulv", DEFAULT],
        "steps_per_s": {
            f"{library}, rounds of {every}": values for (library, every), values in rates.items()
        },
        "setting": {"task": TASK, "window": WINDOW, "width": WIDTH, "batch": BATCH, "updates_per_step": 1},
    }


def main(library: str, steps: str, every: str) -> None:
    """One turn, in a process of its own."""
    arguments = (int(steps), int(every))
    print(time_mulv(*arguments) if library == "mulv" else time_peer(library, *arguments))


if __name__ == "__main__":
    main(*sys.argv[1:])
