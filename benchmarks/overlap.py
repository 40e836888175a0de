"""Whether updates and environments go on at the same time: decisions a second with --overlap and without.

Both only wait, an environment 40 ms a step (about a frame of software GL) and an update 40 ms, so the figures
say how the loop arranges them and not how fast the machine is: 12.5 decisions a second in turn, 25 together.

Prints one JSON object as its last line and writes it to results/speed/overlap.json.
"""

import json
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np
from keeping import keep

from mulv.agents import ALGORITHMS, Algorithm
from mulv.agents.base import AbstractAgent, WindowConfig
from mulv.core.spec import BatchSpec, EnvSpec
from mulv.envs.rendering.frames import FRAME_SPACE
from mulv.run.config import RunConfig
from mulv.run.train import train

SECONDS, DECISIONS = 0.04, 150


class SlowCamera(gym.Env[np.ndarray, np.ndarray]):
    """An environment whose frames take their time."""

    observation_space, action_space = FRAME_SPACE, gym.spaces.Box(-1.0, 1.0, (1,), np.float32)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        super().reset(seed=seed)
        return np.zeros(FRAME_SPACE.shape, np.uint8), {}

    def step(self, action: np.ndarray) -> Any:
        time.sleep(SECONDS)
        return np.zeros(FRAME_SPACE.shape, np.uint8), 0.0, False, False, {}


def _slowly(number: np.ndarray) -> np.ndarray:
    time.sleep(SECONDS)
    return np.asarray(number)


@dataclass(frozen=True)
class SlowAgent(AbstractAgent):
    """An agent whose updates take their time, on the device."""

    config: WindowConfig
    spec: EnvSpec

    @property
    def batch_spec(self) -> BatchSpec:
        return BatchSpec(1, 1, 1, 1, 0.99)

    def init(self, key: Any) -> Any:
        return {"number": jnp.zeros(())}

    def init_memory(self) -> Any:
        return ()

    def observe(self, state: Any, memory: Any, a_prev: Any, r_prev: Any, o_h: Any, key: Any) -> Any:
        return memory

    def act(self, state: Any, memory: Any, noise: Any) -> Any:
        return jnp.full((1,), 0.0 * state["number"])  # waits for the update, as a policy does

    def update(self, state: Any, batch: Any, key: Any) -> Any:
        number = jax.pure_callback(_slowly, jax.ShapeDtypeStruct((), jnp.float32), state["number"])
        return {"number": number}, {"train/number": number}


def decisions_per_second(directory: Path, *, overlap: bool, workers: bool) -> float:
    config = RunConfig(
        task="slow",
        algo="slow",
        agent=WindowConfig(window=1, batch_size=1),
        total_steps=DECISIONS,
        learning_starts=5,
        update_every=1,
        eval_every=0,
        log_every=DECISIONS,
        overlap=overlap,
        env_workers=workers,
    )
    train(config, directory, make=SlowCamera, progress=False)
    (line,) = (directory / "metrics.jsonl").read_text().splitlines()
    return float(json.loads(line)["time/fps"])


def main() -> None:
    ALGORITHMS["slow"] = Algorithm(SlowAgent, WindowConfig, {"default": WindowConfig()})
    figures: dict[str, object] = {}
    for workers in (False, True):
        for overlap in (False, True):
            with tempfile.TemporaryDirectory() as directory:
                name = ("workers" if workers else "one_process") + ("_overlap" if overlap else "_in_turn")
                rate = decisions_per_second(Path(directory) / "run", overlap=overlap, workers=workers)
                figures[name] = round(rate, 1)
    print(json.dumps(keep("overlap", figures)))


if __name__ == "__main__":
    main()
