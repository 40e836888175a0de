"""Converts result lines to runs, for tables and figures."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mulv.bench.lines import axis_of, length_of
from mulv.bench.published import split_task
from mulv.run.config import differences
from mulv.run.result import RunResult

METHODS = ("mulv", "sac", "bc", "lvrep", "drqv2", "dreamer", "slac", "psr", "mwm")  # the order of tables


@dataclass(frozen=True, eq=False)
class Run:
    """A finished run; `returns` and `success` are means over an evaluation's episodes."""

    suite: str
    method: str
    task: str
    seed: int
    env_steps: int  # or updates, for offline runs
    steps: np.ndarray
    returns: np.ndarray
    success: np.ndarray | None
    config: dict[str, Any]
    config_hash: str
    commit: str
    versions: dict[str, Any]
    minutes: float

    @property
    def problem(self) -> str:
        """The task's name without its view (-P, -F)."""
        return split_task(self.task).problem

    @property
    def label(self) -> str:
        """The method's name in legends, with a mark if it observes the full state."""
        return f"{self.method} (full obs.)" if split_task(self.task).view == "F" else self.method


def to_runs(results: Iterable[RunResult]) -> list[Run]:
    """Result lines as runs.

    Of equal lines the last one counts. If a seed ran with different options, these become part of the name.
    """
    last: dict[tuple[Any, ...], Run] = {}
    for result in results:
        run = _run(result)
        key = (run.suite, run.method, run.task, run.seed, run.env_steps, run.config_hash)
        last[key] = run
    groups: dict[tuple[str, str, str], list[Run]] = defaultdict(list)
    for run in last.values():
        groups[run.suite, run.method, run.task].append(run)
    clashes = {(s, m) for (s, m, _), runs in groups.items() if len({r.seed for r in runs}) < len(runs)}
    first: dict[tuple[str, str, str], Run] = {}
    named = []
    for run in last.values():
        if (run.suite, run.method) in clashes:
            other = first.setdefault((run.suite, run.method, run.task), run)
            run = replace(run, method="/".join([run.method, *changed_options(other.config, run.config)]))
        named.append(run)
    return named


def _run(result: RunResult) -> Run:
    success = result.get("eval_success")
    return Run(
        suite=result["suite"],
        method=result["method"],
        task=result["task"],
        seed=result["seed"],
        env_steps=length_of(result)[0],
        steps=np.asarray(axis_of(result), float),
        returns=np.asarray([np.mean(episodes) for episodes in result["eval_returns"]], float),
        success=None if success is None else np.asarray([np.mean(s) for s in success], float),
        config=result["config"],
        config_hash=result["config_hash"],
        commit=result["commit"],
        versions=result["versions"],
        minutes=result["wall_s"] / 60,
    )


def changed_options(first: dict[str, Any], config: dict[str, Any]) -> list[str]:
    """The options in which a configuration differs from the first, without the seed: `window 8`."""
    changes = [change for change in differences(first, config) if change.name != "seed"]
    return [f"{change.name.removeprefix('agent.')} {change.new}" for change in changes]


def by_suite(runs: Sequence[Run]) -> dict[str, list[Run]]:
    """Runs by suite, the largest first."""
    suites: dict[str, list[Run]] = defaultdict(list)
    for run in runs:
        suites[run.suite].append(run)
    return dict(sorted(suites.items(), key=lambda item: (-len(item[1]), item[0])))


def by_label(runs: Iterable[Run]) -> dict[str, dict[str, list[Run]]]:
    """Evaluated runs by label and problem, seeds in order; labels in the order of legends."""
    table: dict[str, dict[str, list[Run]]] = defaultdict(lambda: defaultdict(list))
    for run in sorted(runs, key=lambda run: (method_order(run.label), run.problem, run.seed)):
        if run.returns.size:
            table[run.label][run.problem].append(run)
    return {label: dict(problems) for label, problems in table.items()}


def method_order(label: str) -> tuple[int, str]:
    """Known methods first, each followed by its variants."""
    parent = label.partition("/")[0].partition(" ")[0]
    return (METHODS.index(parent) if parent in METHODS else len(METHODS), label)
