"""How long the replay takes to cut a batch: 256 windows of HalfCheetah-P, as the replay grows.

Prints one JSON object as its last line and writes it to results/speed/replay.json.
"""

import json
import tempfile
import time
from pathlib import Path

import numpy as np
from keeping import keep
from tqdm import tqdm

from mulv.core.spec import BatchSpec, EnvSpec, Step
from mulv.data import Replay, ReplayLayout

SPEC = EnvSpec(obs_shape=(8,), act_dim=6)
BATCH = BatchSpec(batch_size=256, window=3, n_step=3, future=1, gamma=0.99)
EPISODE = 1001


def filled(directory: Path, rows: int) -> Replay:
    """A replay of whole episodes, written row by row as the loop does."""
    replay = Replay.create(directory, ReplayLayout.of(SPEC, lanes=1, capacity=rows, slack=0))
    rng = np.random.default_rng(0)
    zeros, no = np.zeros(1, np.float32), np.zeros(1, bool)
    for t in range(rows):
        step = t % EPISODE
        replay.append(
            Step(
                lane=np.zeros(1, int),
                obs=rng.random((1, 8), np.float32),
                action=rng.random((1, 6), np.float32),
                reward=zeros,
                terminated=no,
                truncated=np.asarray([step == EPISODE - 1]),
                step=np.asarray([step]),
            )
        )
    return replay


def microseconds(replay: Replay, repeats: int = 2000) -> dict[str, float]:
    rng = np.random.default_rng(1)
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        replay.sample(BATCH, 1, rng)
        times.append(time.perf_counter() - start)
    return {"median_us": round(np.median(times) * 1e6, 1), "p99_us": round(np.percentile(times, 99) * 1e6, 1)}


def main() -> None:
    figures: dict[str, object] = {}
    for rows in tqdm((100_000, 300_000, 1_000_000), desc="replay sizes"):
        with tempfile.TemporaryDirectory() as directory:
            figures[f"rows_{rows}"] = microseconds(filled(Path(directory), rows))
    print(json.dumps(keep("replay", figures)))


if __name__ == "__main__":
    main()
