"""How the memory of a run on frames grows: MB of resident memory per 10K steps, after it has warmed up.

    python benchmarks/memory.py                          50K steps of Pendulum-px
    python benchmarks/memory.py --steps 4000             only to see that it works

A run is a process; its memory, and that of any process below it, is read off whenever it has logged a line of
metrics. The slope is that of a straight line through what was read in its last four fifths.

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


def resident_mb(process: psutil.Process) -> float:
    """Of a process and all below it, each counted whole."""
    family = [process, *process.children(recursive=True)]
    return sum(member.memory_info().rss for member in family) / 1e6


def watched(command: list[str], metrics: Path, steps: int) -> list[tuple[int, float]]:
    """Environment steps and MB, at each line of metrics that the run writes."""
    read: list[tuple[int, float]] = []
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as run:
        process, bar = psutil.Process(run.pid), tqdm(total=steps, desc=f"memory on {TASK}", unit="step")
        while run.poll() is None:
            time.sleep(0.2)
            lines = metrics.read_text().splitlines() if metrics.exists() else []
            now = json.loads(lines[-1])["env_steps"] if lines else 0
            if lines and (not read or now > read[-1][0]):
                try:
                    read.append((now, resident_mb(process)))
                except psutil.NoSuchProcess:
                    break  # it has just ended
                bar.update(now - bar.n)
        bar.close()
    if run.returncode:
        sys.exit(f"the run failed: {' '.join(command)}")
    return read


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=50_000, help="environment steps of the run")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as out:
        command = [sys.executable, "-m", "mulv", "train", "--task", TASK, "--preset", "pixels"]
        command += ["--total-steps", str(options.steps), "--out", out]
        metrics = Path(out) / TASK / "mulv" / "seed-0" / "metrics.jsonl"
        read = np.array(watched(command, metrics, options.steps))
    steps, mb = read[read[:, 0] >= options.steps / 5].T
    slope = float(np.polyfit(steps, mb, 1)[0] * 10_000)
    figures = {
        "rss_mb_per_10k_steps": round(slope, 3),
        "rss_mb_after_warm_up": round(float(mb[0]), 1),
        "rss_mb_at_the_end": round(float(mb[-1]), 1),
        "steps": options.steps,
        "task": TASK,
        "read": [[int(step), round(float(value), 2)] for step, value in read],
    }
    print(json.dumps(keep("memory", figures)))


if __name__ == "__main__":
    main()
