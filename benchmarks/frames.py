"""How long the replay takes to cut a batch of frames, and how much memory and disk it takes for them.

A batch is 256 windows of three, the windows three steps later, and the next frames: seven frames an example;
"windows" are the first of these alone.
The replay was filled by a hundred lanes, so that no two frames of a window lie side by side. Times are CPU
seconds of the process, which depend little on what else the machine does, and the clock's. The machine's
memory has to hold the file, or its disk is what is measured.

Prints one JSON object as its last line and writes it to results/speed/frames.json.
"""

import argparse
import json
import resource
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from keeping import keep
from tqdm import tqdm

from mulv.core.spec import BatchSpec, EnvSpec, Step
from mulv.data import Replay, ReplayLayout

SPEC = EnvSpec(obs_shape=(64, 64, 3), act_dim=4, obs_dtype="uint8")
BATCH = BatchSpec(batch_size=256, window=3, n_step=3, future=1, gamma=0.99)  # seven frames each
LANES, EPISODE = 100, 251


def filled(directory: Path, rows: int) -> Replay:
    """A replay of whole episodes of noise."""
    replay = Replay.create(directory, ReplayLayout.of(SPEC, lanes=LANES, capacity=rows, slack=0))
    frames = np.random.default_rng(0).integers(0, 256, (LANES, 64, 64, 3), np.uint8)
    lanes, zeros, no = np.arange(LANES), np.zeros(LANES, np.float32), np.zeros(LANES, bool)
    for t in tqdm(range(rows // LANES), desc="frames, by the hundred"):
        step = np.full(LANES, t % EPISODE)
        frames[:, 0, 0, 0] = t % 256
        replay.append(
            Step(lanes, frames, np.zeros((LANES, 4), np.float32), zeros, no, step == EPISODE - 1, step)
        )
    return replay


def cut_windows(replay: Replay, rng: np.random.Generator) -> np.ndarray:
    """The frames of as many windows as a batch has."""
    lane, t = rng.integers(LANES, size=BATCH.batch_size), rng.integers(2, replay.counts[0], BATCH.batch_size)
    return replay.obs_at((t[:, None] + np.arange(-2, 1)) * LANES + lane[:, None])


def milliseconds(draw: Callable[[np.random.Generator], object], repeats: int) -> dict[str, float]:
    rng = np.random.default_rng(1)
    cpu, wall = [], []
    for _ in range(repeats):
        before = time.process_time(), time.perf_counter()
        draw(rng)
        cpu.append(time.process_time() - before[0])
        wall.append(time.perf_counter() - before[1])
    return {
        "cpu_mean_ms": round(1e3 * float(np.mean(cpu)), 2),
        "wall_median_ms": round(1e3 * float(np.median(wall)), 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--repeats", type=int, default=200)
    parser.add_argument(
        "--directory", type=Path, help="where the file is put; default: the temporary directory"
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.directory) as directory:
        replay = filled(Path(directory), options.rows)
        figures = {
            "rows": options.rows,
            "disk_gb": round(sum(p.stat().st_size for p in Path(directory).glob("*.bin")) / 1e9, 3),
            "windows": milliseconds(lambda rng: cut_windows(replay, rng), options.repeats),
            "batch": milliseconds(lambda rng: replay.sample(BATCH, 1, rng), options.repeats),
            "peak_rss_gb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9, 3),
        }
    print(json.dumps(keep("frames", figures)))


if __name__ == "__main__":
    main()
