"""A run's whole configuration: what the command line is made from and what is saved with the run."""

import dataclasses
import hashlib
import json
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, NamedTuple

import tyro

from mulv.agents import AgentConfig, algorithm, preset
from mulv.core.errors import MulvError
from mulv.core.limits import POSITIVE, at_least, between, check_fields
from mulv.core.options import Options, from_tree, to_tree, with_options
from mulv.envs.rendering.gl import Quality
from mulv.run.migration import migrate

DEFAULT_ALGO = "mulv"
Collection = Literal["policy", "paper"]
# How help shows an option that is None by default.
_NUMBER, _TEXT = tyro.conf.arg(metavar="INT"), tyro.conf.arg(metavar="STR")
MOST_ENVS = 1024  # a larger number is taken for a typing error


@dataclass(frozen=True)
class RunConfig:
    """Everything that decides a run's outcome; two runs with equal configs on one machine are equal."""

    task: str = "Pendulum-P"
    """A task (`mulv envs`), Gymnasium id, or dm_control domain-task."""
    algo: str = DEFAULT_ALGO
    """Algorithm."""
    agent: Annotated[AgentConfig, tyro.conf.arg(name="")] = field(
        default_factory=lambda: preset(DEFAULT_ALGO, "default")
    )
    """Hyperparameters of the algorithm."""
    keep: Annotated[str | None, _TEXT] = None
    """Entries of the observation to keep: 0-4,7 or position,touch."""
    seed: Annotated[int, at_least(0)] = 0
    """Every random stream of the run derives from this."""
    total_steps: Annotated[int | None, at_least(0), _NUMBER] = None
    """Environment steps. Default: the task's own."""
    learning_starts: Annotated[int | None, at_least(0), _NUMBER] = None
    """Steps of uniform actions before the first update. Default: the task's own."""
    collect: Collection = "policy"
    """Who acts after that: the policy, or as in Algorithm 1 with L uniform actions in each episode."""
    replay_ratio: Annotated[float, POSITIVE] = 1.0
    """Updates per decision, on average."""
    update_every: Annotated[int, at_least(1)] = 8
    """Decisions between rounds of updates, each one compiled scan."""
    replay_capacity: Annotated[int, at_least(1)] = 1_000_000
    """Rows the replay keeps."""
    num_envs: Annotated[int, between(1, MOST_ENVS)] = 1
    """Environments stepped in parallel."""
    env_workers: bool | None = None
    """A process per environment. Default: for tasks seen by a camera."""
    overlap: bool | None = None
    """Learn while environments step. Default: for tasks of frames."""
    env_timeout: Annotated[float, POSITIVE] = 60.0
    """Seconds that an environment has to answer."""
    action_repeat: Annotated[int | None, at_least(1), _NUMBER] = None
    """Times each action is taken. Default: the task's own."""
    camera: Annotated[str | None, _TEXT] = None
    """Camera of a -px task. Default: the task's own."""
    render_quality: Quality | None = None
    """Of a -px task. Default: fast on a CPU."""
    eval_every: Annotated[int | None, at_least(0), _NUMBER] = None
    """Steps between evaluations; 0 is never. Default: 1/20 of the run."""
    eval_episodes: Annotated[int, at_least(1)] = 10
    """Episodes in an evaluation."""
    latent_projection: bool = False
    """Draw where the experience lies in the latent space."""
    log_every: Annotated[int, at_least(1)] = 500
    """Steps between lines of metrics."""
    checkpoint_every: Annotated[int, at_least(1)] = 10_000
    """Steps between checkpoints, each at the next episode's end."""
    keep_checkpoints: Annotated[int, at_least(1)] = 2
    """How many of the newest checkpoints stay."""
    data: Annotated[str | None, _TEXT] = None
    """What the replay begins with: a run, or a local Minari dataset."""
    offline_updates: Annotated[int, at_least(0)] = 0
    """Updates on that data alone, before the first step."""

    def __post_init__(self) -> None:
        check_fields(self)
        if self.total_steps == 0 and not self.offline_updates:
            raise MulvError("total_steps is 0; it must be at least 1")
        if self.replay_capacity < (least := self.agent.example_rows):
            raise MulvError(f"replay_capacity is {self.replay_capacity}; it must be at least {least}")
        if self.offline_updates and self.data is None:
            raise MulvError("offline_updates need data to learn from; say which with --data")
        if algorithm(self.algo).copies_data and (self.data is None or self.total_steps):
            raise MulvError(
                f"{self.algo} copies recorded actions and learns nothing from steps of its own; "
                f"use mulv offline --algo {self.algo} --data DATASET"
            )
        if not isinstance(self.agent, algorithm(self.algo).config):
            raise MulvError(f"{type(self.agent).__name__} does not configure {self.algo!r}")

    @property
    def random_steps(self) -> int:
        """Steps of uniform actions before the first update."""
        return self.learning_starts or 0

    @property
    def repeat(self) -> int:
        """Simulator steps per decision of the agent."""
        return self.action_repeat or 1


def to_json(config: Any) -> dict[str, Any]:
    """A configuration as a dict of JSON types."""
    return to_tree(config)


def config_hash(config: RunConfig) -> str:
    """A short hash of a configuration's content."""
    return hashlib.sha256(json.dumps(to_json(config), sort_keys=True).encode()).hexdigest()[:12]


def from_json(saved: dict[str, Any]) -> RunConfig:
    """The configuration from what `to_json` wrote, in this or an older version of mulv."""
    if not isinstance(saved, dict):
        raise MulvError(f"a configuration is an object, not {type(saved).__name__}")
    tree = migrate(saved)
    agent, algo = tree.get("agent", {}), tree.get("algo", DEFAULT_ALGO)
    if not isinstance(agent, dict):
        raise MulvError(f"agent is {agent!r:.40}; it must be an object")
    if not isinstance(algo, str):
        raise MulvError(f"algo is {algo!r:.40}; it must be a name")
    tree["agent"] = from_tree(algorithm(algo).config, agent)
    return from_tree(RunConfig, tree)


def with_run_options(config: RunConfig, *layers: Options) -> RunConfig:
    """The configuration with options of the run or of its agent changed, as `with_options` does."""
    fields = {f.name for f in dataclasses.fields(RunConfig)} - {"agent"}
    of_run = [{name: layer[name] for name in layer if name in fields} for layer in layers]
    of_agent = [{name: layer[name] for name in layer if name not in fields} for layer in layers]
    return with_options(config, *of_run, {"agent": with_options(config.agent, *of_agent)})


class Change(NamedTuple):
    """A field that differs between two configurations; ABSENT where one has no such field."""

    name: str
    old: Any
    new: Any


ABSENT = "(absent)"


def differences(old: Any, new: Any) -> list[Change]:
    """The fields that differ between two configurations, or between their JSON (also of older versions)."""
    return _differences(_as_today(old), _as_today(new), "")


def _as_today(config: Any) -> dict[str, Any]:
    """A configuration's JSON with the fields of today; one that today's code cannot read stays as it is."""
    if dataclasses.is_dataclass(config):
        return to_json(config)
    try:
        return to_json(from_json(config))
    except MulvError:
        return migrate(config)


def _differences(old: dict[str, Any], new: dict[str, Any], prefix: str) -> list[Change]:
    changes = []
    for name in sorted(old.keys() | new.keys()):
        a, b = old.get(name, ABSENT), new.get(name, ABSENT)
        if isinstance(a, dict) and isinstance(b, dict):
            changes += _differences(a, b, f"{prefix}{name}.")
        elif a != b:
            changes.append(Change(f"{prefix}{name}", a, b))
    return changes
