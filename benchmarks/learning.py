"""The learning figures in results/: runs what is missing, one single-core process per core, and records it.

    python benchmarks/learning.py                 every suite
    python benchmarks/learning.py first-steps     one of them

Each run is a `mulv train` of its own; its result line is appended to results/<suite>/<method>.jsonl. A run
that is already there, with the same options, is not run again.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import NamedTuple

from tqdm import tqdm

RESULTS = Path(__file__).parents[1] / "results"


class Job(NamedTuple):
    """One run of a suite."""

    suite: str
    method: str  # the agent's name, a variant after a slash
    task: str
    seed: int
    options: tuple[str, ...]

    @property
    def file(self) -> Path:
        return RESULTS / self.suite / f"{self.method.replace('/', '-')}.jsonl"

    def done(self) -> bool:
        lines = self.file.read_text().splitlines() if self.file.exists() else []
        mine = (self.task, self.seed, list(self.options))
        # Lines older than the field are of suites whose options never changed.
        return any((r["task"], r["seed"], r.get("options", mine[2])) == mine for r in map(json.loads, lines))


def jobs() -> Iterator[Job]:
    for seed in range(4):
        for window in (4, 1):
            method = "sac" if window == 4 else "sac/window-1"
            # Plain networks and α = 1 at the start: the textbook's SAC, so that memory is all that differs.
            plain = ("--algo", "sac", "--trunk.kind", "mlp", "--initial-temperature", "1.0", "--tau", "0.005")
            options = ("--window", str(window), "--total-steps", "20000", *plain)
            yield Job("pendulum-memory", method, "Pendulum-P", seed, options)
    first = ("--algo", "sac", "--total-steps", "30000", "--tau", "0.005")
    yield Job("first-steps", "sac", "HalfCheetah-P", 0, first)
    yield from positions_30k()
    yield from ablations()


def positions_30k() -> Iterator[Job]:
    """µLV-Rep against SAC-MLP with the same trunk, window, replay ratio and backup."""
    for seed in range(3):
        for task in ("HalfCheetah-P", "Hopper-P", "Walker-P", "Ant-P", "Pendulum-P"):
            steps = ("--total-steps", "15000" if task == "Pendulum-P" else "30000")
            same = ("--window", "3", "--n-step", "3", *steps)
            yield Job("positions-30k", "mulv", task, seed, ("--algo", "mulv", *same))
            yield Job(
                "positions-30k", "sac", task, seed, ("--algo", "sac", "--trunk.activation", "elu", *same)
            )


ABLATIONS = {
    "mulv": (),
    "mulv/no-elbo": ("--elbo-weight", "0"),
    "mulv/elbo-1": ("--elbo-weight", "1"),
    "mulv/posterior-learned": ("--posterior", "learned"),
    "mulv/observations": ("--no-predict-changes",),
    "mulv/tau-0.005": ("--tau", "0.005"),
    "mulv/no-critic-gradient": ("--no-critic-trains-representation",),
    "mulv/omega-fixed": ("--no-train-frequencies",),
    "mulv/family-relu": ("--family", "relu"),
    "mulv/family-erf": ("--family", "erf"),
    "mulv/latent-free": ("--no-normalise-latent",),
    "mulv/trunk-relu": ("--trunk.activation", "relu"),
    "mulv/l-1": ("--future", "1"),
    "mulv/l-5": ("--future", "5"),
    "mulv/window-1": ("--window", "1"),
    "mulv/window-5": ("--window", "5"),
    "mulv/latent-32": ("--latent-dim", "32"),
    "mulv/latent-128": ("--latent-dim", "128"),
    "mulv/latent-512": ("--latent-dim", "512"),
    "mulv/features-128": ("--features", "128"),
    "mulv/features-2048": ("--features", "2048"),
    "mulv/1-step": ("--n-step", "1"),
}


def ablations() -> Iterator[Job]:
    """What each choice is worth. The seeds are not those of any comparison with another method."""
    for seed in (100, 101):
        for method, changes in ABLATIONS.items():
            options = ("--algo", "mulv", "--total-steps", "20000", "--eval-every", "2500", *changes)
            yield Job("ablations-20k", method, "HalfCheetah-P", seed, options)


def run(job: Job, cores: "SimpleQueue[int]") -> str:
    core = cores.get()
    try:
        with tempfile.TemporaryDirectory() as root:
            command = [sys.executable, "-m", "mulv", "train", "--task", job.task, "--seed", str(job.seed)]
            command += [*job.options, "--out", root, "--no-progress"]
            subprocess.run(
                command,
                check=True,
                capture_output=True,
                text=True,
                preexec_fn=lambda: os.sched_setaffinity(0, {core}),
            )
            (result,) = Path(root).glob("**/result.json")
            line = json.loads(result.read_text()) | {
                "suite": job.suite,
                "method": job.method,
                "options": job.options,
            }
    finally:
        cores.put(core)
    job.file.parent.mkdir(parents=True, exist_ok=True)
    with job.file.open("a") as file:
        file.write(json.dumps(line) + "\n")
    return f"{job.suite} {job.method} {job.task} seed {job.seed}: {line['final_mean']:.1f}"


def main() -> None:
    suites = sorted({job.suite for job in jobs()})
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("suites", nargs="*", metavar="SUITE", help=f"default: {' '.join(suites)}")
    chosen = parser.parse_args().suites or suites
    if unknown := set(chosen) - set(suites):
        parser.error(f"no suite is called {unknown.pop()!r}; there are: {' '.join(suites)}")
    missing = [job for job in jobs() if job.suite in chosen and not job.done()]
    cores: SimpleQueue[int] = SimpleQueue()
    available = sorted(os.sched_getaffinity(0))
    for core in available:
        cores.put(core)
    with ThreadPoolExecutor(len(available)) as pool, tqdm(total=len(missing), desc="runs") as bar:
        for said in pool.map(lambda job: run(job, cores), missing):
            bar.write(said)
            bar.update()


if __name__ == "__main__":
    main()
