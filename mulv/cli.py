"""The command `mulv`."""

import errno
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mulv.core.errors import EnvironmentFault, MulvError

if TYPE_CHECKING:
    from mulv.run.config import RunConfig

USAGE = """\
usage: mulv COMMAND [OPTIONS]

commands:
  train   train an agent, or take up a run again (--resume RUN)
  offline learn from a dataset alone, or collect one (--collect KIND)
  eval    evaluate a run's newest checkpoint
  compare draw the learning curves of runs in one picture
  bench   run a suite of tasks, methods and seeds (--list shows them)
  report  one HTML page of all results under a directory
  envs    list the tasks
  doctor  say what can draw frames on this machine, and how fast
  theory  of a known POMDP: theory check FILE-or-NAME tries the paper's claims, theory solve plans,
          theory regret lock learns it by Algorithm 1 with exact regret

mulv COMMAND --help lists a command's options.
"""


def main(argv: Sequence[str] | None = None) -> None:
    """Run a command; whatever goes wrong is one line on stderr and a non-zero exit."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if not arguments or arguments[0] in ("-h", "--help"):
        print(USAGE, end="")
        sys.exit(0 if arguments else 2)
    name, rest = arguments[0], arguments[1:]
    try:
        code = _command(name)(rest)
    except MulvError as error:
        if isinstance(error, EnvironmentFault) and error.__cause__ is not None:
            traceback.print_exception(error.__cause__)
        code = _fail(str(error))
    except BrokenPipeError:  # whoever read the output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 0
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        code = _fail(f"the disk is full ({error.filename or error}); free some space and --resume the run")
    except KeyboardInterrupt:
        code = 130
    sys.exit(code)


def _command(name: str) -> Callable[[list[str]], int]:
    from mulv.core.names import lookup

    commands = {
        "train": _train,
        "offline": _offline,
        "eval": _eval,
        "compare": _compare,
        "bench": _bench,
        "report": _report,
        "envs": _envs,
        "doctor": _doctor,
        "theory": _theory,
    }
    return lookup("command", name, commands)


def _fail(message: str) -> int:
    print(f"mulv: error: {message}", file=sys.stderr)
    return 1


def _train(arguments: list[str]) -> int:
    from mulv.options import parse_train
    from mulv.run.branch import branch
    from mulv.run.directory import new_directory
    from mulv.run.train import complete

    options = parse_train(arguments)
    config = complete(options.config)
    path = options.resume or new_directory(options.out, config)
    if options.branch is not None:
        origin = branch(options.branch, config, path, options.at)
        print(f"branch     of {origin.run} at step {origin.step:,}")
    resume = options.resume is not None or options.branch is not None
    return _run(config, path, resume=resume, progress=options.progress)


def _offline(arguments: list[str]) -> int:
    from mulv.options import parse_collect, parse_offline
    from mulv.run.collect import collect
    from mulv.run.directory import new_directory
    from mulv.run.runtime import use_compilation_cache
    from mulv.run.train import complete

    if (wanted := parse_collect(arguments)) is None:
        options = parse_offline(arguments)
        config = complete(options.config)
        path = options.out or new_directory(Path("runs"), config)
        return _run(config, path, resume=False, progress=options.progress)
    use_compilation_cache()
    found = collect(wanted, say=lambda s: print(s, flush=True))
    print(f"dataset    {wanted.out}: {found}")
    return 0


def _run(config: "RunConfig", path: Path, *, resume: bool, progress: bool) -> int:
    """Train, and tell how it went."""
    import numpy as np

    from mulv.bench.curves import hidden_values, latent_visits, learning_curve
    from mulv.run.interrupts import Interrupted
    from mulv.run.runtime import use_compilation_cache
    from mulv.run.train import train

    use_compilation_cache()
    updates = f"{config.offline_updates:,} updates on {config.data}" if config.offline_updates else ""
    steps = f"{config.total_steps:,} steps" if config.total_steps else ""
    length = " and then ".join(filter(None, (updates, steps)))
    print(f"task       {config.task}, {length} with {config.algo}, seed {config.seed}")
    print(f"run        {path}", flush=True)
    try:
        outcome = train(config, path, resume=resume, progress=progress, say=lambda s: print(s, flush=True))
    except Interrupted as interrupted:
        print(f"stopped by {interrupted}; take it up again with: mulv train --resume {path}", file=sys.stderr)
        return interrupted.exit_code
    result = outcome.result
    if result["eval_returns"]:
        last = np.asarray(result["eval_returns"][-1])
        spread = f"{last.mean():.1f} ± {last.std():.1f} over {last.size} episodes"
        print(f"evaluation {spread}, {result['wall_s']:.0f} s")
        print(f"curve      {learning_curve(result, path / 'learning_curve.png')}")
    if (probe := path / "probe.npz").exists():
        picture = hidden_values(
            probe, f"{config.task}: what is hidden, and what z knows of it", path / "hidden.png"
        )
        print(f"hidden     {picture}")
    if strips := sorted(path.glob("strips/*.png")):
        print(f"frames     {strips[-1]}: seen, drawn, next, predicted")
    if (visits := path / "visits.npz").exists():
        picture = latent_visits(visits, f"{config.task}: where the experience lies", path / "visits.png")
        print(f"visits     {picture}")
    print(f"results    {path / 'result.json'}")
    return 0


def _eval(arguments: list[str]) -> int:
    import numpy as np

    from mulv.api import load
    from mulv.options import parse_eval
    from mulv.run.runtime import use_compilation_cache

    options = parse_eval(arguments)
    use_compilation_cache()
    learner = load(options.run)
    evaluation = learner.evaluate(
        episodes=options.episodes,
        seed=options.seed,
        deterministic=not options.stochastic,
        video=options.video,
    )
    for number, (ret, length) in enumerate(zip(evaluation.returns, evaluation.lengths, strict=True), 1):
        print(f"episode {number:3d}  return {ret:10.1f}  length {length:5d}")
    print(f"mean {np.mean(evaluation.returns):.1f} ± {np.std(evaluation.returns):.1f}")
    if evaluation.successes is not None:
        print(f"success in {sum(evaluation.successes)} of {len(evaluation.successes)} episodes")
    if options.video is not None:
        print(f"film {options.video}")
    return 0


def _compare(arguments: list[str]) -> int:
    from mulv.bench.compare import read_results, table
    from mulv.bench.curves import compare
    from mulv.options import parse_compare

    options = parse_compare(arguments)
    results = read_results(options.runs)
    print("\n".join(table(results)))
    print(f"picture {compare(results, results[0]['task'], options.out)}")
    return 0


def _report(arguments: list[str]) -> int:
    from mulv.bench.report import write_report
    from mulv.options import parse_report

    options = parse_report(arguments)
    runs = write_report(options.directory, options.out)
    print(f"page {options.out}: {runs} runs, {options.out.stat().st_size / 1e6:.1f} MB")
    return 0


def _bench(arguments: list[str]) -> int:
    from mulv.bench.command import bench, list_suites
    from mulv.bench.suites import find_suite
    from mulv.options import parse_bench

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


def _envs(arguments: list[str]) -> int:
    from mulv.envs.listing import pixel_paragraphs, vector_table
    from mulv.pomdps.ids import IDS, LOCKS

    if arguments:
        print("usage: mulv envs\n\nLists the tasks: what an agent sees, what it does, and for how long.")
        return 0 if arguments[0] in ("-h", "--help") else 2
    print("\n".join(vector_table()))
    print("\nTasks of frames, 64x64x3 of uint8, each action taken twice (docs/tasks.md):")
    print("\n".join(pixel_paragraphs()))
    pomdps = ", ".join([*(each.id for each in IDS.values()), *LOCKS])
    print(f"\nAlso finite POMDPs, seen and acted on in whole numbers: {pomdps}.")
    print("Also any Gymnasium id or dm_control domain-task, with --keep 0-4,7 or --keep position,touch.")
    return 0


def _doctor(arguments: list[str]) -> int:
    from mulv.envs.doctor import examine

    if arguments:
        print(
            "usage: mulv doctor\n\nSays what can draw frames here, how fast, and what to install if nothing."
        )
        return 0 if arguments[0] in ("-h", "--help") else 2
    for line in examine():
        print(line, flush=True)
    return 0


def _theory(arguments: list[str]) -> int:
    from mulv.theory_commands import theory

    return theory(arguments)
