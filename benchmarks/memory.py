"""How the memory of a run on frames grows: MB of resident memory per 10K steps, after it has warmed up.

    python benchmarks/memory.py                          50K steps of Pendulum-px
    python benchmarks/memory.py --steps 10000            only to see that it works

A run is a process; its memory, and that of any process below it, is read off five times a second. What counts
is the least in every 2500 steps, so that a batch which is there for a moment does not; the slope is that of a
straight line through these of the last four fifths. It is given of all resident memory, and of the part that
is the run's own: the rest is of files, libraries for example, which the kernel takes back as it likes.

Prints one JSON object as its last line and writes it to results/speed/memory.json.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import psutil
from keeping import keep
from tqdm import tqdm

TASK = "Pendulum-px"
INTERVAL = 2500  # steps


def resident_mb(process: psutil.Process) -> tuple[float, float]:
    """Of a process and all below it, each counted whole: everything, and without what is of files."""
    read = [member.memory_info() for member in (process, *process.children(recursive=True))]
    return sum(info.rss for info in read) / 1e6, sum(info.rss - info.shared for info in read) / 1e6


def env_steps(metrics: Path) -> int:
    """As of the last whole line that the run has logged."""
    lines = metrics.read_text().rpartition("\n")[0].splitlines() if metrics.exists() else []
    return json.loads(lines[-1])["env_steps"] if lines else 0


def watched(command: list[str], metrics: Path, steps: int) -> np.ndarray:
    """Environment steps, MB and own MB, at each reading."""
    read: list[tuple[float, ...]] = []
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as run:
        process, bar = psutil.Process(run.pid), tqdm(total=steps, desc=f"memory on {TASK}", unit="step")
        while run.poll() is None:
            time.sleep(0.2)
            now = env_steps(metrics)
            bar.update(now - bar.n)
            try:
                read.append((now, *resident_mb(process)))
            except psutil.NoSuchProcess:
                continue  # one below it has just ended, or it has itself
        bar.close()
    if run.returncode:
        sys.exit(f"the run failed: {' '.join(command)}")
    return np.array(read)


def least(read: np.ndarray, steps: int) -> np.ndarray:
    """Of every interval its end and the least that was read before it, where anything was."""
    ends = np.arange(INTERVAL, steps + 1, INTERVAL)
    within = [(end, read[(read[:, 0] >= end - INTERVAL) & (read[:, 0] < end), 1:]) for end in ends]
    return np.array([(end, *values.min(axis=0)) for end, values in within if len(values)])


def slope(steps: np.ndarray, mb: np.ndarray) -> tuple[float, float]:
    """MB per 10K steps, and its standard error."""
    (rise, _), covariance = np.polyfit(steps / 10_000, mb, 1, cov=True)
    return round(float(rise), 3), round(float(covariance[0, 0] ** 0.5), 3)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=50_000, help="environment steps of the run")
    options = parser.parse_args()
    if options.steps < 4 * INTERVAL:
        parser.error(f"--steps is {options.steps}; a line needs at least {4 * INTERVAL}")
    with tempfile.TemporaryDirectory() as out:
        command = [sys.executable, "-m", "mulv", "train", "--task", TASK, "--preset", "pixels"]
        command += ["--total-steps", str(options.steps), "--out", out]
        metrics = Path(out) / TASK / "mulv" / "seed-0" / "metrics.jsonl"
        read = least(watched(command, metrics, options.steps), options.steps)
    steps, all_mb, own_mb = read[read[:, 0] > options.steps / 5].T  # an interval goes by its end
    rise, error = slope(steps, all_mb)
    figures = {
        "rss_mb_per_10k_steps": rise,
        "rss_standard_error": error,
        "own_mb_per_10k_steps": slope(steps, own_mb)[0],
        "rss_mb_after_warm_up": round(float(all_mb[0]), 1),
        "rss_mb_at_the_end": round(float(all_mb[-1]), 1),
        "steps": options.steps,
        "task": TASK,
        "read": [[int(step), *(round(float(mb), 2) for mb in values)] for step, *values in read],
    }
    print(json.dumps(keep("memory", figures)))


if __name__ == "__main__":
    main()
