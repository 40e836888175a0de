"""`mulv memory`: how long a memory a task needs."""

import json
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium as gym
import tyro

from mulv.api import Learner, load
from mulv.bench.memory import table, write
from mulv.core.errors import MulvError
from mulv.envs import VectorEnv, resolve
from mulv.envs.hidden_names import hidden_names
from mulv.run import seeding
from mulv.run.config import RunConfig
from mulv.run.diagnostics.decodability.collect import (
    ENVS,
    NOISES,
    Choose,
    Sequences,
    collect,
    policy_actions,
    uniform_actions,
)
from mulv.run.diagnostics.decodability.measure import UPDATES, WINDOWS, measure, updates_of
from mulv.run.diagnostics.decodability.recommend import recommend, sentences
from mulv.run.diagnostics.decodability.scores import LEVEL
from mulv.run.directory import RunDirectory
from mulv.run.progress import Progress
from mulv.run.runtime import use_compilation_cache
from mulv.run.seeding import Stream
from mulv.run.train import environment_of


@dataclass(frozen=True)
class MemoryOptions:
    """How long a memory a task needs: what windows of each length, and a GRU, tell of what it hides."""

    task: str
    """The task, of vectors, with something hidden: its name ends in -P."""
    policy: Path | None = None
    """A run whose policy acts, with noise of several sizes. Default: uniform actions."""
    keep: str | None = None
    """Of another environment than mulv's own: what of its observation is seen, such as 0-4,7."""
    decisions: int = 40_000
    """Decisions to collect; a fifth of them is tested on."""
    windows: tuple[int, ...] = WINDOWS
    """Lengths L to try."""
    gru: bool = True
    """Also fit a GRU, whose memory is as long as an episode."""
    updates: int = UPDATES
    """Gradient steps of each network."""
    seed: int = 0
    """Seed of episodes, actions and networks."""
    out: Path | None = None
    """Where memory.json and memory.png are written. Default: runs/memory/TASK, or TASK-policy."""
    json: bool = False
    """Print the figures as one JSON object on the last line."""
    progress: bool = True
    """Show a progress bar."""


@dataclass(frozen=True)
class _Source:
    """The source of the data: a task, and the agent that acts in it, or None for uniform actions."""

    task: str
    make: Callable[[], gym.Env]
    learner: Learner | None

    @property
    def label(self) -> str:
        """A name for the output directory."""
        return self.task.replace("/", "-") + ("" if self.learner is None else "-policy")

    def actions(self, seed: int) -> Choose:
        """The function that chooses actions: uniform ones, or those of the agent's policy."""
        if self.learner is None:
            return uniform_actions(seed)
        return policy_actions(self.learner.agent, self.learner.state, ENVS, seed)


def run(arguments: Sequence[str]) -> int:
    """Collect data, fit, print the table, write the record and the picture; returns the exit code."""
    options = tyro.cli(MemoryOptions, args=list(arguments), prog="mulv memory")
    if options.updates < 1 or not options.windows or min(options.windows) < 1:
        raise MulvError("--windows and --updates must be at least 1")
    use_compilation_cache()
    source = _source(options)
    acted = "uniform actions" if options.policy is None else f"the policy of {options.policy}"
    print(f"task       {source.task}, {options.decisions:,} decisions by {acted}", flush=True)
    sequences, names = _collect(source, options)
    total = updates_of(options.windows, options.updates, options.gru)
    with closing(Progress(total, 0, f"fitting {source.task}", options.progress)) as bar:
        done = 0

        def tick(updates: int) -> None:
            nonlocal done
            done = min(total, done + updates)
            bar.step(done, None)

        found = measure(
            sequences,
            names,
            windows=options.windows,
            updates=options.updates,
            gru=options.gru,
            seed=options.seed,
            tick=tick,
        )
    advice = recommend(found)
    folder = options.out or Path("runs/memory") / source.label
    title = f"{source.task}, {'uniform actions' if source.learner is None else 'actions of a policy'}"
    figures = write(folder, found, advice, _config(options, source), title)
    print(f"R² on {found.tested_episodes} test episodes, with {LEVEL:.0%} intervals over them")
    print("\n".join([*table(found), *sentences(found, advice)]))
    print(f"written to {folder}")
    if options.json:
        print(json.dumps(figures))
    return 0


def _source(options: MemoryOptions) -> _Source:
    """The source that the options name; an error if it cannot be measured."""
    past = None if options.policy is None else RunDirectory(options.policy).read_config()
    config = RunConfig(task=options.task, keep=options.keep)
    if past is not None and past.task == options.task and options.keep is None:
        config = past  # the run decides which entries are observed
    task, learner = resolve(config.task, config.keep), None
    if task.pixels:
        raise MulvError(f"{task.name} shows frames; windows are measured on vectors: choose a task named -P")
    if past is not None and options.policy is not None:
        if resolve(past.task, past.keep) != task:
            raise MulvError(f"{options.policy} is of {past.task}, not of {task.name}")
        learner, config = load(options.policy), past
    make = environment_of(config)
    with closing(make()) as env:
        if len(env.observation_space.shape or ()) != 1:
            raise MulvError(f"{task.name} shows frames; windows are measured on vectors")
        if not hidden_names(env):
            hint = "choose one named -P" if task.name.endswith("-F") else "say what is seen with --keep"
            raise MulvError(f"{task.name} hides nothing, so there is nothing to decode; {hint}")
    return _Source(task.name, make, learner)


def _collect(source: _Source, options: MemoryOptions) -> tuple[Sequences, list[str]]:
    """The trajectories, and the names of the hidden entries."""
    envs = VectorEnv.of(
        source.make, ENVS, lambda lane, episode: seeding.integer(options.seed, Stream.ENV, lane, episode)
    )
    bar = Progress(options.decisions, 0, f"collecting {source.task}", options.progress)
    with closing(source.make()) as env:
        names = hidden_names(env)
    with closing(envs), closing(bar):
        sequences = collect(
            envs,
            source.actions(options.seed),
            options.decisions,
            tick=lambda taken: bar.step(min(taken, options.decisions), None),
        )
    return sequences, names


def _config(options: MemoryOptions, source: _Source) -> dict[str, Any]:
    """The options that decide the numbers, and the policy that acted."""
    config: dict[str, Any] = {
        "task": source.task,
        "keep": options.keep,
        "decisions": options.decisions,
        "windows": [*options.windows],
        "gru": options.gru,
        "updates": options.updates,
        "seed": options.seed,
        "actions": "uniform",
    }
    if (learner := source.learner) is not None:
        config |= {
            "actions": "policy",
            "policy": {
                "run": str(options.policy),
                "algo": learner.config.algo,
                "seed": learner.config.seed,
                "env_steps": learner.env_steps,
                "noises": [*NOISES],
            },
        }
    return config
