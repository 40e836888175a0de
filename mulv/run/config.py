"""A run's whole configuration: what the command line is made from and what is saved with the run."""

import dataclasses
import hashlib
import json
import types
import typing
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

import tyro

from mulv.agents import AgentConfig, algorithm, preset
from mulv.core.errors import MulvError
from mulv.core.names import nearest
from mulv.envs.rendering.gl import Quality

DEFAULT_ALGO = "mulv"


@dataclass(frozen=True)
class RunConfig:
    """Everything that decides a run's outcome; two runs with equal configs on one machine are equal."""

    task: str = "Pendulum-P"
    """Task name (`mulv envs`), a Gymnasium id, or a dm_control domain-task."""
    algo: str = DEFAULT_ALGO
    """Algorithm."""
    agent: Annotated[AgentConfig, tyro.conf.arg(name="")] = field(
        default_factory=lambda: preset(DEFAULT_ALGO, "default")
    )
    """Hyperparameters of the algorithm."""
    keep: str | None = None
    """What of another environment's observation is kept: 0-4,7 or position,touch. Default: all."""
    seed: int = 0
    """Every random stream of the run derives from this."""
    total_steps: int | None = None
    """Environment steps. Default: the task's own; none after updates on data."""
    learning_starts: int = 1000
    """Steps of uniform actions before the first update."""
    collect: Literal["policy", "paper"] = "policy"
    """Who acts after that: the policy; or as in Algorithm 1, from a random step of each episode on a window's
    length of uniform actions in between."""
    replay_ratio: float = 1.0
    """Updates per decision, on average."""
    update_every: int = 8
    """Decisions between rounds of updates; a round is one compiled scan, so fewer rounds cost less."""
    replay_capacity: int = 1_000_000
    """Rows the replay keeps."""
    num_envs: int = 1
    """Environments stepped in parallel."""
    env_workers: bool | None = None
    """One process per environment instead of this one. Default: for tasks seen by a camera, slow to draw."""
    overlap: bool | None = None
    """Learn while environments step, from data without that step. Default: for tasks of frames."""
    env_timeout: float = 60.0
    """Seconds after which an environment that does not answer is given up."""
    action_repeat: int | None = None
    """Times each action is taken; env_steps counts every one. Default: the task's own, 2 for frames."""
    camera: str | None = None
    """Camera of a -px task, its name or number. Default: the task's own."""
    render_quality: Quality | None = None
    """Of a -px task: paper, or fast (no multisampling, small shadow map). Default: fast on a CPU."""
    eval_every: int | None = None
    """Environment steps, or updates on data, between evaluations; 0 is never. Default: 1/20 of the run."""
    eval_episodes: int = 10
    """Episodes in an evaluation."""
    visits: bool = False
    """Save at each evaluation where the experience lies in the latent space, and draw it: visits.png."""
    log_every: int = 500
    """Environment steps, or updates on data, between lines of metrics."""
    checkpoint_every: int = 10_000
    """Environment steps, each time on to the next episode end, or updates on data between checkpoints."""
    keep_checkpoints: int = 2
    """How many of the newest checkpoints stay."""
    data: str | None = None
    """Dataset that the replay begins with: a run directory, or a local Minari dataset. Default: none."""
    offline_updates: int = 0
    """Updates on that data alone, before the first step."""

    def __post_init__(self) -> None:
        at_least = {
            "total_steps": 0 if self.offline_updates else 1,
            "offline_updates": 0,
            "learning_starts": 0,
            "replay_capacity": self.agent.example_rows,
            "num_envs": 1,
            "update_every": 1,
            "action_repeat": 1,
            "eval_every": 0,
            "eval_episodes": 1,
            "log_every": 1,
            "checkpoint_every": 1,
            "keep_checkpoints": 1,
            "seed": 0,
        }
        for name, least in at_least.items():
            value = getattr(self, name)
            if value is not None and value < least:
                raise MulvError(f"{name} is {value}; it must be at least {least}")
        if not self.replay_ratio > 0 or not self.env_timeout > 0:
            raise MulvError("replay_ratio and env_timeout must be positive")
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
    def repeat(self) -> int:
        """Simulator steps in a decision."""
        return self.action_repeat or 1


def to_json(config: Any) -> dict[str, Any]:
    """A configuration as JSON's types."""
    return dataclasses.asdict(config)


def config_hash(config: RunConfig) -> str:
    """A short name for a configuration's content."""
    return hashlib.sha256(json.dumps(to_json(config), sort_keys=True).encode()).hexdigest()[:12]


def from_json(saved: dict[str, Any]) -> RunConfig:
    """The configuration that `to_json` wrote; an unknown field is an error with the nearest name."""
    saved = dict(saved)
    saved["agent"] = _dataclass_from(
        algorithm(saved.get("algo", DEFAULT_ALGO)).config, saved.get("agent", {})
    )
    return _dataclass_from(RunConfig, saved)


def _dataclass_from(cls: type, saved: dict[str, Any]) -> Any:
    fields = {f.name: f for f in dataclasses.fields(cls)}
    hints = typing.get_type_hints(cls)
    values: dict[str, Any] = {}
    for name, value in saved.items():
        if name not in fields:
            near = nearest(name, fields)
            raise MulvError(
                f"{cls.__name__} has no field {name!r}" + (f"; did you mean {near!r}?" if near else "")
            )
        if dataclasses.is_dataclass(hints[name]) and isinstance(value, dict):
            value = _dataclass_from(typing.cast(type, hints[name]), value)
        elif not dataclasses.is_dataclass(value) and not _fits(value, hints[name]):
            raise MulvError(f"{cls.__name__}.{name} is {value!r}, which is not {hints[name]}")
        values[name] = value
    return cls(**values)


def _fits(value: Any, hint: Any) -> bool:
    """Whether a JSON value is of an annotated type (the few that configurations use)."""
    origin = typing.get_origin(hint)
    if origin is typing.Literal:
        return value in typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return any(_fits(value, option) for option in typing.get_args(hint))
    if hint is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    if hint is int:
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, hint)


def differences(old: Any, new: Any, prefix: str = "") -> list[str]:
    """What changed between two configurations, a line each."""
    old, new = (to_json(c) if dataclasses.is_dataclass(c) else c for c in (old, new))
    lines = []
    for name in sorted(old.keys() | new.keys()):
        a, b = old.get(name, "(absent)"), new.get(name, "(absent)")
        if isinstance(a, dict) and isinstance(b, dict):
            lines += differences(a, b, f"{prefix}{name}.")
        elif a != b:
            lines.append(f"{prefix}{name}: {a} in the run, {b} now")
    return lines
