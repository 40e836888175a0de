"""`mulv bench`: its options, and what it prints before and after a sweep."""

import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro
from tyro.constructors import PrimitiveConstructorSpec

from mulv.bench import estimate
from mulv.bench.board import Board, duration
from mulv.bench.cores import available_cores
from mulv.bench.pool import LocalPool, Pool
from mulv.bench.ray_pool import RayPool
from mulv.bench.suite import Job, Suite
from mulv.bench.suites import SUITES, find_suite
from mulv.bench.sweep import Tally, failures_file, finished, grouped, run_sweep
from mulv.core.errors import MulvError
from mulv.run.directory import code_version
from mulv.run.interrupts import Interrupts


def _at_most(given: list[str]) -> int | None:
    """A limit from the command line; None if no number is given."""
    if len(given) > 1:
        raise ValueError(f"one number at most, not {' '.join(given)}")
    return int(given[0]) if given else None


AtMost = Annotated[
    int | None,
    PrimitiveConstructorSpec(
        nargs="*",
        metavar="[N]",
        instance_from_str=_at_most,
        is_instance=lambda value: value is None or isinstance(value, int),
        str_from_instance=lambda value: [] if value is None else [str(value)],
    ),
]


@dataclass(frozen=True)
class BenchOptions:
    """Run what of a suite is not in the store yet: every method on every task with every seed."""

    suite: tyro.conf.Positional[str] = ""
    """A suite's name (--list shows them), or a JSON file with one of your own."""
    list: bool = False
    """Show the suites with their size and an estimate, and do nothing."""
    methods: tuple[str, ...] = ()
    """Only these methods of the suite."""
    tasks: tuple[str, ...] = ()
    """Only these tasks of the suite."""
    seeds: int | None = None
    """How many seeds. Default: the suite's."""
    steps: int | None = None
    """Environment steps of each run. Default: the suite's."""
    out: Path = Path("runs")
    """The store: results are appended to OUT/SUITE/METHOD.jsonl, run directories are in OUT/SUITE/runs."""
    workers: int | None = None
    """Runs side by side. Default: as many as fit the cores; with --ray, the cluster."""
    threads: int = 1
    """Cores of one run. Its numbers depend on it, in their last bits."""
    vmap_seeds: AtMost = 1
    """Train so many seeds of a method on a task in one process, by one vmap; without N, all of them."""
    gpus: float = 0.0
    """GPUs of one run, with --ray."""
    retries: int = 2
    """How often a failed run is tried again."""
    ray: str | None = None
    """Run on the Ray cluster at this address; auto is the one of this machine, started if there is none."""
    same_code: bool = False
    """Run again what was finished by other code than this."""
    keep_replay: bool = False
    """Keep the experience of finished runs, which is large; with --ray nothing of a run is kept."""
    dry_run: bool = False
    """Say what would run, and do nothing."""


def parse_bench(arguments: Sequence[str]) -> BenchOptions:
    """The options of `mulv bench`."""
    return tyro.cli(BenchOptions, args=[*arguments], prog="mulv bench")


def run(arguments: Sequence[str]) -> int:
    """Run the missing runs of a suite; returns the exit code."""
    options = parse_bench(arguments)
    if options.list:
        print("\n".join(list_suites()))
        return 0
    suite = find_suite(options.suite).chosen(
        methods=options.methods, tasks=options.tasks, seeds=options.seeds, steps=options.steps
    )
    return bench(
        suite,
        options.out,
        workers=options.workers,
        threads=options.threads,
        vmap_seeds=options.vmap_seeds,
        gpus=options.gpus,
        retries=options.retries,
        ray=options.ray,
        same_code=options.same_code,
        keep_replay=options.keep_replay,
        dry_run=options.dry_run,
        again=arguments,
    )


def list_suites() -> list[str]:
    """One line per suite: its size, and the estimated time on one core."""
    row = f"{{:{max(map(len, SUITES))}}}{{:>7}}{{:>9}}{{:>7}}{{:>10}}{{:>6}}{{:>12}}  {{}}"
    lines = [row.format("suite", "tasks", "methods", "seeds", "steps", "runs", "core-hours", "")]
    for suite in SUITES.values():
        lacking = suite.lacks()
        hours = "?" if lacking else f"{sum(map(estimate.seconds, suite.jobs())) / 3600:.1f}"
        said = f"cannot run yet: mulv lacks {lacking}" if lacking else suite.purpose
        counts = (len(suite.tasks), len(suite.methods), len(suite.seeds), f"{suite.steps:,d}", suite.runs)
        lines.append(row.format(suite.name, *counts, hours, said))
    return lines


def plan(jobs: Sequence[Job], done: dict[str, object]) -> list[str]:
    """One line per run, with the estimated time on one core if it is still to do."""
    width = max(len(str(job)) for job in jobs)
    return [
        f"{'finished' if job.key in done else 'to do':9} {job!s:{width}}  {job.steps:>9,d} steps  "
        + ("" if job.key in done else f"about {duration(estimate.seconds(job))}")
        for job in jobs
    ]


def bench(
    suite: Suite,
    out: Path,
    *,
    workers: int | None = None,
    threads: int = 1,
    vmap_seeds: int | None = 1,
    gpus: float = 0.0,
    retries: int = 2,
    ray: str | None = None,
    same_code: bool = False,
    keep_replay: bool = False,
    dry_run: bool = False,
    again: Sequence[str] = (),
) -> int:
    """Run those of a suite's runs that are missing in the store `out`; returns the exit code.

    `vmap_seeds` is the largest number of seeds in one process; None is no limit. `again` are the arguments
    to print for continuing.
    """
    if threads < 1 or retries < 0 or gpus < 0 or (workers is not None and workers < 1):
        raise MulvError("--workers and --threads must be at least 1, --retries and --gpus not negative")
    if vmap_seeds is not None and vmap_seeds < 1:
        raise MulvError("--vmap-seeds must be at least 1; without a number it is all seeds")
    if gpus and ray is None:
        raise MulvError("--gpus is what a run asks of a cluster; it goes with --ray")
    jobs = suite.jobs()
    done = finished(out, jobs, same_code=same_code)
    missing = [job for job in jobs if job.key not in done]
    other = sum(line.get("code") != code_version() for line in done.values())
    if other:
        print(f"note       {other} of the finished runs are of other code; --same-code runs them again")
    if dry_run:
        print("\n".join(plan(jobs, dict(done))))
    print(
        f"suite      {suite.name}: {len(jobs)} runs, {len(done)} finished, {len(missing)} to do", flush=True
    )
    if missing:
        print(f"estimate   {duration(sum(map(estimate.seconds, missing)))} of one core", flush=True)
    if dry_run or not missing:
        return 0
    runs = out / suite.name / "runs"
    pool: Pool
    if ray is not None:
        pool = RayPool(ray, out, limit=workers, threads=threads, gpus=gpus)
    else:
        slots = workers or max(1, available_cores() // threads)
        pool = LocalPool(runs, slots=slots, threads=threads, keep_replay=keep_replay)
    groups = grouped(missing, vmap_seeds or len(missing))
    together = max(map(len, groups))
    units = f"groups of up to {together} seeds" if together > 1 else "runs"
    print(f"results    {out / suite.name}, {pool.slots} {units} side by side", flush=True)
    board = Board(missing, len(done), pool.slots, together)
    with Interrupts() as interrupts:
        tally = run_sweep(groups, out, pool, board, retries=retries, interrupts=interrupts)
    return _conclude(tally, out, suite.name, again)


def _conclude(tally: Tally, out: Path, suite: str, again: Sequence[str]) -> int:
    """Print what is left and how to continue; returns the exit code."""
    if tally.signum is not None:
        go_on = shlex.join(["mulv", "bench", *again])
        print(f"stopped; runs keep their checkpoints. Go on with: {go_on}", file=sys.stderr)
        return 128 + tally.signum
    if tally.elsewhere:
        print(f"mulv: {len(tally.elsewhere)} runs are in progress in another process", file=sys.stderr)
    if tally.failed:
        where = failures_file(out, suite)
        print(f"mulv: error: {len(tally.failed)} runs failed; why: {where}", file=sys.stderr)
        return 1
    return 0
