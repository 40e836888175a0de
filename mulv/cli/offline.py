"""`mulv offline`."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, get_args

import tyro

from mulv.agents import AgentConfig, preset
from mulv.cli.arguments import asks_for_help, choose_kinds, describe_kinds, value_of
from mulv.cli.train import train_and_report
from mulv.core.errors import MulvError
from mulv.core.names import lookup
from mulv.core.options import with_options
from mulv.run.config import DEFAULT_ALGO, Collection, RunConfig
from mulv.run.directory import new_directory
from mulv.run.offline.collect import CollectConfig, Kind, collect
from mulv.run.runtime import use_compilation_cache
from mulv.run.train import complete


@dataclass(frozen=True)
class OfflineOptions:
    """Learn from a dataset alone: no step is taken but in evaluations. --collect KIND makes a dataset.

    The run is taken up again, or continued in the environment, with: mulv train --resume RUN.
    """

    config: Annotated[RunConfig, tyro.conf.arg(name="")]
    preset: str = "default"
    """Named values of the agent's options."""
    steps: int | None = None
    """Updates; another name for --offline-updates."""
    alpha: float = 0.0
    """Weight of the penalty on what the data does not cover (Algorithm 2); 0 is none."""
    out: Path | None = None
    """The run directory. Default: a new one in runs."""
    progress: bool = True
    """Show a progress bar."""


def parse_offline(arguments: Sequence[str]) -> OfflineOptions:
    """The options of `mulv offline`; an offline run has no warm-up with random actions."""
    algo = value_of("--algo", arguments) or DEFAULT_ALGO
    agent, left = choose_kinds(preset(algo, value_of("--preset", arguments) or "default"), arguments)
    asks = asks_for_help(arguments)
    data = value_of("--data", arguments) or ("DATASET" if asks else None)
    if data is None:
        raise MulvError("say what to learn from with --data DATASET, or make a dataset with --collect KIND")
    default = RunConfig(
        algo=algo, agent=agent, data=data, offline_updates=50_000, total_steps=0, learning_starts=0
    )
    options = tyro.cli(
        OfflineOptions,
        args=left,
        default=OfflineOptions(default),
        prog="mulv offline",
        description=f"{OfflineOptions.__doc__}\n\n{describe_kinds(agent)}",
        config=(tyro.conf.AvoidSubcommands,),
    )
    updates = options.config.offline_updates if options.steps is None else options.steps
    agent = with_penalty(options.config.agent, options.alpha)
    return replace(options, config=replace(options.config, offline_updates=updates, agent=agent))


def with_penalty(agent: AgentConfig, alpha: float) -> AgentConfig:
    """The agent with a penalty: rewards are lowered by α times its uncertainty."""
    if alpha == 0:
        return agent
    if not alpha > 0:
        raise MulvError(f"alpha is {alpha}; it must not be negative")
    if not hasattr(agent, "bonus"):
        raise MulvError(f"{type(agent).__name__} has no penalty to weigh; use --alpha 0")
    return with_options(agent, {"bonus.scale": alpha, "bonus.use": "pessimism"})


def parse_collect(arguments: Sequence[str]) -> CollectConfig | None:
    """The options of `mulv offline --collect`; None without it."""
    kind = value_of("--collect", arguments)
    if kind is None or kind in get_args(Collection):  # a value of the run's own option --collect
        return None
    lookup("kind of dataset", kind, dict.fromkeys(get_args(Kind)))
    return tyro.cli(CollectConfig, args=list(arguments), prog="mulv offline")


def run(arguments: Sequence[str]) -> int:
    """Learn from a dataset, or collect one; returns the exit code."""
    if (wanted := parse_collect(arguments)) is None:
        options = parse_offline(arguments)
        config = complete(options.config)
        path = options.out or new_directory(Path("runs"), config)
        return train_and_report(config, path, resume=False, progress=options.progress)
    use_compilation_cache()
    found = collect(wanted, say=lambda line: print(line, flush=True))
    print(f"dataset    {wanted.out}: {found}")
    return 0
