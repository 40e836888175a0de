"""The command line's options, made from the configurations themselves."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import tyro
from tyro.constructors import PrimitiveConstructorSpec

from mulv.agents import AgentConfig, preset
from mulv.core.errors import MulvError
from mulv.run.collect import CollectConfig
from mulv.run.config import DEFAULT_ALGO, RunConfig
from mulv.run.directory import RunDirectory


@dataclass(frozen=True)
class TrainOptions:
    """Train an agent, or take up a run again. --algo and --preset decide the agent's defaults."""

    config: Annotated[RunConfig, tyro.conf.arg(name="")]
    preset: str = "default"
    """Named values of the agent's options: default, paper; mulv also has lvrep (full observation) and pixels
    (frames on a CPU)."""
    out: Path = Path("runs")
    """Where run directories are made."""
    resume: Path | None = None
    """A run directory to take up again; its own options hold, only --total-steps may grow."""
    branch: Path | None = None
    """A run directory to start from: its newest checkpoint and experience, with other options given here."""
    at: int | None = None
    """With --branch, the step of the checkpoint to start from. Default: the newest."""
    progress: bool = True
    """Show a progress bar."""


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


@dataclass(frozen=True)
class EvalOptions:
    """Evaluate a run's newest checkpoint."""

    run: tyro.conf.Positional[Path]
    """The run's directory."""
    episodes: int = 10
    """Episodes."""
    seed: int = 0
    """Seed of the episodes."""
    stochastic: bool = False
    """Sample actions instead of taking the mode."""
    video: Path | None = None
    """A .gif or .mp4 to write the first episode to, where the task shows frames."""


@dataclass(frozen=True)
class CompareOptions:
    """Draw the learning curves of finished runs in one picture, and list what they reached."""

    runs: tyro.conf.Positional[tuple[Path, ...]]
    """Run directories."""
    out: Path = Path("comparison.png")
    """The picture."""


@dataclass(frozen=True)
class ReportOptions:
    """Write one HTML page: learning curves, aggregates with intervals, the paper's table beside ours."""

    directory: tyro.conf.Positional[Path]
    """Where the results are: run directories, or <suite>/<method>.jsonl with a result line each."""
    out: Path = Path("report.html")
    """The page."""


def _at_most(given: list[str]) -> int | None:
    """A number, or none of them for no bound."""
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
    """`mulv bench`'s options."""
    return tyro.cli(BenchOptions, args=[*arguments], prog="mulv bench")


def parse_compare(arguments: Sequence[str]) -> CompareOptions:
    """`mulv compare`'s options."""
    return tyro.cli(CompareOptions, args=list(arguments), prog="mulv compare")


def parse_report(arguments: Sequence[str]) -> ReportOptions:
    """`mulv report`'s options."""
    return tyro.cli(ReportOptions, args=list(arguments), prog="mulv report")


def parse_train(arguments: Sequence[str]) -> TrainOptions:
    """Two passes: which algorithm and preset, or which run to resume; then every option with its default."""
    resume, branch = _value_of("--resume", arguments), _value_of("--branch", arguments)
    if resume is not None and branch is not None:
        raise MulvError("--resume continues a run and --branch starts another from it; give one of them")
    if (source := resume or branch) is not None:
        default = RunDirectory(Path(source)).read_config()
    else:
        algo = _value_of("--algo", arguments) or DEFAULT_ALGO
        default = RunConfig(algo=algo, agent=preset(algo, _value_of("--preset", arguments) or "default"))
    options = tyro.cli(TrainOptions, args=list(arguments), default=TrainOptions(default), prog="mulv train")
    if options.at is not None and options.branch is None:
        raise MulvError("--at says where to --branch from; name that run")
    return options


def parse_offline(arguments: Sequence[str]) -> OfflineOptions:
    """`mulv offline`'s options; a run on data has no warm-up of random steps."""
    algo = _value_of("--algo", arguments) or DEFAULT_ALGO
    agent = preset(algo, _value_of("--preset", arguments) or "default")
    asks = {"-h", "--help"} & {*arguments}
    data = _value_of("--data", arguments) or ("DATASET" if asks else None)
    if data is None:
        raise MulvError("say what to learn from with --data DATASET, or make a dataset with --collect KIND")
    default = RunConfig(
        algo=algo, agent=agent, data=data, offline_updates=50_000, total_steps=0, learning_starts=0
    )
    options = tyro.cli(
        OfflineOptions, args=list(arguments), default=OfflineOptions(default), prog="mulv offline"
    )
    updates = options.config.offline_updates if options.steps is None else options.steps
    agent = with_penalty(options.config.agent, options.alpha)
    return replace(options, config=replace(options.config, offline_updates=updates, agent=agent))


def with_penalty(agent: AgentConfig, alpha: float) -> AgentConfig:
    """The agent with rewards lowered by α times its uncertainty: a bonus of the other sign."""
    if alpha == 0:
        return agent
    if not alpha > 0:
        raise MulvError(f"alpha is {alpha}; it must not be negative")
    if not hasattr(agent, "bonus_scale"):
        raise MulvError(f"{type(agent).__name__} has no penalty to weigh; use --alpha 0")
    lower: dict[str, Any] = {"bonus_scale": alpha, "bonus_use": "pessimism"}
    return replace(agent, **lower)


def parse_collect(arguments: Sequence[str]) -> CollectConfig | None:
    """`mulv offline --collect`'s options; None where nothing is to be collected."""
    if _value_of("--collect", arguments) is None:
        return None
    return tyro.cli(CollectConfig, args=list(arguments), prog="mulv offline")


def parse_eval(arguments: Sequence[str]) -> EvalOptions:
    """`mulv eval`'s options."""
    return tyro.cli(EvalOptions, args=list(arguments), prog="mulv eval")


def _value_of(flag: str, arguments: Sequence[str]) -> str | None:
    """A flag's value, looked up before the options are known."""
    for position, argument in enumerate(arguments):
        name, equals, value = argument.partition("=")
        if name == flag:
            if not equals and position + 1 == len(arguments):
                raise MulvError(f"{flag} needs a value")
            return value if equals else arguments[position + 1]
    return None
