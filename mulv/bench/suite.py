"""Suites, and the runs they consist of."""

import dataclasses
import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any

from mulv.agents import ALGORITHMS, algorithm, preset
from mulv.core.errors import MulvError
from mulv.core.names import lookup
from mulv.core.options import Options
from mulv.envs import resolve
from mulv.run.config import RunConfig, config_hash, from_json, to_json, with_run_options
from mulv.run.train import complete


@dataclass(frozen=True)
class Method:
    """An algorithm with a preset and changed options."""

    algo: str
    options: Options = field(default_factory=dict)
    preset: str = "default"
    full: bool = False  # on the task with full observation: -F in place of -P


@dataclass(frozen=True)
class Suite:
    """Every method on every task with every seed.

    With `data` the runs are offline: `data` names the dataset, with {task} for the task's name, and `steps`
    are updates.
    """

    name: str
    purpose: str
    tasks: tuple[str, ...]
    methods: Mapping[str, Method]  # a method's name is its agent's, with a variant after a slash
    steps: int
    seeds: tuple[int, ...]
    options: Options = field(default_factory=dict)  # for every run
    steps_of: Mapping[str, int] = field(default_factory=dict)  # by task, where it is not `steps`
    options_of: Mapping[str, Options] = field(default_factory=dict)  # by task, for every run on it
    data: str = ""

    @property
    def runs(self) -> int:
        return len(self.tasks) * len(self.methods) * len(self.seeds)

    def chosen(
        self,
        *,
        methods: Sequence[str] = (),
        tasks: Sequence[str] = (),
        seeds: int | None = None,
        steps: int | None = None,
    ) -> "Suite":
        """The suite reduced to some tasks and methods, or with another number of seeds or steps."""
        if (seeds is not None and seeds < 1) or (steps is not None and steps < 1):
            raise MulvError("--seeds and --steps must be at least 1")
        by_name = {task: task for task in self.tasks}
        more = range(self.seeds[-1] + 1, self.seeds[-1] + 1 + (seeds or 0))
        return dataclasses.replace(
            self,
            methods={m: lookup(f"method of {self.name}", m, self.methods) for m in methods or self.methods},
            tasks=tuple(lookup(f"task of {self.name}", t, by_name) for t in tasks or self.tasks),
            seeds=(*self.seeds, *more)[: seeds or len(self.seeds)],
            steps=steps or self.steps,
            steps_of={} if steps else self.steps_of,
        )

    def lacks(self) -> str | None:
        """What is missing for the suite to run, in one line; None if nothing is."""
        algos = dict.fromkeys(m.algo for m in self.methods.values() if m.algo not in ALGORITHMS)
        tasks = [task for task in self.tasks if not _exists(task)]
        parts = []
        if tasks:
            others = f" and {len(tasks) - 1} more of its tasks" if len(tasks) > 1 else ""
            parts.append(f"the task {tasks[0]}{others}")
        if algos:
            parts.append(f"the algorithm{'s' * (len(algos) > 1)} {', '.join(algos)}")
        return " and ".join(parts) or None

    def jobs(self) -> list["Job"]:
        """All runs, ordered by seed, then by task and method."""
        if lacking := self.lacks():
            raise MulvError(f"the suite {self.name} cannot run yet: mulv lacks {lacking}")
        return [
            Job(self.name, name, self._config(method, task, seed))
            for seed in self.seeds
            for task in self.tasks
            for name, method in self.methods.items()
        ]

    def _config(self, method: Method, task: str, seed: int) -> RunConfig:
        layers = (self.options, self.options_of.get(task, {}), method.options)
        if fixed := {"task", "algo", "seed", "total_steps", "data", "offline_updates"} & {*chain(*layers)}:
            raise MulvError(f"{fixed.pop()} is no option of the suite {self.name}: it has a field of its own")
        base = RunConfig(
            task="-F".join(task.rsplit("-P", 1)) if method.full else task,
            algo=method.algo,
            agent=preset(method.algo, method.preset),
            seed=seed,
            **self._length(task),
        )
        return complete(with_run_options(base, *layers))

    def _length(self, task: str) -> dict[str, Any]:
        steps = self.steps_of.get(task, self.steps)
        if not self.data:
            return {"total_steps": steps}
        data = self.data.replace("{task}", task)
        return {"data": data, "offline_updates": steps, "total_steps": 0, "learning_starts": 0}


@dataclass(frozen=True)
class Job:
    """One run of a suite, with its complete configuration."""

    suite: str
    method: str
    config: RunConfig

    @cached_property
    def key(self) -> str:
        """A short hash of everything that decides the run, except the code."""
        parts = (self.suite, self.method, config_hash(self.config))
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:12]

    @property
    def steps(self) -> int:
        return self.config.offline_updates + (self.config.total_steps or 0)

    def __str__(self) -> str:
        return f"{self.method} {self.config.task} seed {self.config.seed}"

    def to_json(self) -> dict[str, Any]:
        return {"suite": self.suite, "method": self.method, "config": to_json(self.config)}

    @staticmethod
    def from_json(saved: dict[str, Any]) -> "Job":
        return Job(saved["suite"], saved["method"], from_json(saved["config"]))


def read_suite(path: Path) -> Suite:
    """A user's suite from a JSON file with the fields of `Suite`; `seeds` is a number or a list."""
    try:
        saved = json.loads(path.read_text())
        methods = {name: _record(Method, given) for name, given in saved.pop("methods").items()}
        seeds = saved.pop("seeds")
        seeds = tuple(range(seeds)) if isinstance(seeds, int) else tuple(int(seed) for seed in seeds)
        given = {"name": path.stem, "purpose": "", **saved, "methods": methods, "seeds": seeds}
        suite: Suite = _record(Suite, {**given, "tasks": tuple(saved["tasks"])})
    except OSError as error:
        raise MulvError(f"{path} cannot be read: {error.strerror}") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise MulvError(f"{path} is not a suite: {type(error).__name__} {error}") from error
    if not (suite.tasks and suite.methods and suite.seeds and all(map(_whole, _all_steps(suite)))):
        raise MulvError(f"{path} is not a suite: it needs tasks, methods, seeds and whole numbers of steps")
    for name in (suite.name, *suite.methods):
        if not re.fullmatch(r"[\w.+-]+(/[\w.+-]+)?", name) or ".." in name:
            raise MulvError(f"{path}: {name!r} cannot be a name: letters, digits and .+-_ only")
    for method in suite.methods.values():
        algorithm(method.algo)
    for task in suite.tasks:
        resolve(task)
    for task in (*suite.steps_of, *suite.options_of):
        lookup(f"task of {path}", task, dict.fromkeys(suite.tasks))
    return suite


def _record(cls: type, given: dict[str, Any]) -> Any:
    fields = {f.name: f for f in dataclasses.fields(cls)}
    for name in given:
        lookup(f"field of a {cls.__name__.lower()}", name, fields)
    return cls(**given)


def _all_steps(suite: Suite) -> list[Any]:
    return [suite.steps, *suite.steps_of.values()]


def _whole(value: Any) -> bool:
    return isinstance(value, int) and value > 0


def _exists(task: str) -> bool:
    try:
        return bool(resolve(task))
    except MulvError:
        return False
