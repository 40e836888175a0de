"""`mulv train`."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import numpy as np
import tyro

from mulv.agents import preset, sized
from mulv.bench.curves import hidden_values, learning_curve, projection_picture
from mulv.cli.arguments import choose_kinds, describe_kinds, value_of
from mulv.core.errors import MulvError
from mulv.run.branch import branch
from mulv.run.config import DEFAULT_ALGO, RunConfig
from mulv.run.directory import RunDirectory, new_directory
from mulv.run.interrupts import Interrupted
from mulv.run.runtime import use_compilation_cache
from mulv.run.train import complete, train


@dataclass(frozen=True)
class TrainOptions:
    """Train an agent, or take up a run again. --algo and --preset decide the agent's defaults."""

    config: Annotated[RunConfig, tyro.conf.arg(name="")]
    preset: str = "default"
    """Named options: default, paper, early; of mulv also paper-code, pixels, lvrep."""
    size: str = "m"
    """Of networks: s, half; m, the preset's; l, four times, for a GPU."""
    out: Path = Path("runs")
    """Where run directories are made."""
    resume: Path | None = None
    """A run to take up again; only --total-steps may grow."""
    branch: Path | None = None
    """A run to start from, with its experience and other options."""
    at: int | None = None
    """The checkpoint of --branch. Default: the newest."""
    progress: bool = True
    """Show a progress bar."""


def parse_train(arguments: Sequence[str]) -> TrainOptions:
    """The options of `mulv train`.

    Parsed in two passes: first algorithm and preset, or the run to resume; then all options, whose defaults
    depend on these.
    """
    resume, branch = value_of("--resume", arguments), value_of("--branch", arguments)
    if resume is not None and branch is not None:
        raise MulvError("--resume continues a run and --branch starts another from it; give one of them")
    if (source := resume or branch) is not None:
        default = RunDirectory(Path(source)).read_config()
    else:
        algo = value_of("--algo", arguments) or DEFAULT_ALGO
        chosen = preset(algo, value_of("--preset", arguments) or "default")
        default = RunConfig(algo=algo, agent=sized(chosen, value_of("--size", arguments) or "m"))
    agent, left = choose_kinds(default.agent, arguments)
    options = tyro.cli(
        TrainOptions,
        args=left,
        default=TrainOptions(replace(default, agent=agent)),
        prog="mulv train",
        description=f"{TrainOptions.__doc__}\n\n{describe_kinds(agent)}",
        config=(tyro.conf.AvoidSubcommands,),
    )
    if options.at is not None and options.branch is None:
        raise MulvError("--at says where to --branch from; name that run")
    return options


def run(arguments: Sequence[str]) -> int:
    """Train, resume or branch; returns the exit code."""
    options = parse_train(arguments)
    config = complete(options.config)
    path = options.resume or new_directory(options.out, config)
    if options.branch is not None:
        origin = branch(options.branch, config, path, options.at)
        print(f"branch     of {origin.run} at step {origin.step:,}")
    resume = options.resume is not None or options.branch is not None
    return train_and_report(config, path, resume=resume, progress=options.progress)


def train_and_report(config: RunConfig, path: Path, *, resume: bool, progress: bool) -> int:
    """Train, plot the curves, and print the result; returns the exit code."""
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
    if grids := sorted(path.glob("reconstructions/*.png")):
        print(f"frames     {grids[-1]}: seen, drawn, next, predicted")
    if (projection := path / "latent_projection.npz").exists():
        title = f"{config.task}: where the experience lies"
        print(f"latents    {projection_picture(projection, title, path / 'latent_projection.png')}")
    print(f"results    {path / 'result.json'}")
    return 0
