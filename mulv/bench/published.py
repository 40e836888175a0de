"""Reference returns (data/*.csv): the paper's table, others with the full state, and uniform actions."""

import csv
import re
from collections.abc import Iterator
from functools import cache
from importlib import resources
from typing import NamedTuple

PAPER_STEPS = 200_000
PAPER_SEEDS = 4

# The paper's task: ours without its suffix. dm_control has no "Hopper-run"; hopper-hop is likely meant.
PAPER_TASKS = {
    "HalfCheetah": "HalfCheetah",
    "Humanoid": "Humanoid",
    "Walker": "Walker",
    "Ant": "Ant",
    "Hopper": "Hopper",
    "Cheetah-run": "cheetah-run",
    "Walker-run": "walker-run",
    "Hopper-run": "hopper-hop",
    "Humanoid-run": "humanoid-run",
    "Pendulum": "Pendulum",
}
PAPER_METHODS = {
    "mulv": "mulv",
    "dreamer_v2": "dreamer",
    "sac_mlp": "sac",
    "slac": "slac",
    "psr": "psr",
    "best_fo": "lvrep",
}
# Tasks where the paper's rewards are not Gymnasium's: only the -mbbl variants compare (docs/tasks.md).
OTHER_REWARDS = {"Humanoid", "Walker", "Ant", "Hopper", "Pendulum"}


class TaskName(NamedTuple):
    """A task's name in parts: `Hopper-P-mbbl` is Hopper, P, mbbl."""

    base: str
    view: str  # P, F, or empty if the name has no such suffix
    variant: str  # mbbl, strict, or empty

    @property
    def problem(self) -> str:
        """The task's name without its view: returns of one problem are on one scale."""
        return f"{self.base}-{self.variant}" if self.variant else self.base


def split_task(task: str) -> TaskName:
    """The parts of a task's name."""
    match = re.fullmatch(r"(.+)-([PF])(?:-(mbbl|strict))?", task, re.DOTALL)
    return TaskName(match[1], match[2], match[3] or "") if match else TaskName(task, "", "")


class Published(NamedTuple):
    """A mean over seeds and their standard deviation."""

    mean: float
    std: float


class Ceiling(NamedTuple):
    """Returns with the full state after 200K steps: the best published, and SAC's."""

    best: float
    sac: float


class CurvePoint(NamedTuple):
    """A published return of a method after a number of environment steps."""

    method: str
    env_steps: int
    ret: float


@cache
def paper_table() -> dict[str, dict[str, Published]]:
    """The paper's returns by our task (without suffix) and our method; `lvrep` saw the full observation."""
    table: dict[str, dict[str, Published]] = {ours: {} for ours in PAPER_TASKS.values()}
    for row in _rows("masked_control.csv"):
        method = PAPER_METHODS[row["method"]]
        table[PAPER_TASKS[row["task"]]][method] = Published(float(row["mean"]), float(row["std"]))
    return table


def ceiling(task: str) -> Ceiling | None:
    """The ceiling of a task with its native reward; None if there is none."""
    name = split_task(task)
    return None if name.variant == "mbbl" else _ceilings().get(name.base)


def full_state_curves(task: str) -> list[CurvePoint]:
    """Published returns on a task with the full state and its native reward, by method and step."""
    name = split_task(task)
    return [] if name.variant == "mbbl" else _full_state_curves().get(name.base, [])


def random_return(task: str) -> float | None:
    """The mean return of uniform actions, which does not depend on what is observed; None if unknown."""
    name = split_task(task)
    return _random_returns().get(f"{name.base}-mbbl" if name.variant == "mbbl" else name.base)


def compares_with_paper(task: str) -> bool:
    """Whether a task's rewards are those of the paper's table."""
    name = split_task(task)
    return name.base in paper_table() and (name.variant == "mbbl" or name.base not in OTHER_REWARDS)


@cache
def _ceilings() -> dict[str, Ceiling]:
    return {row["task"]: Ceiling(float(row["best"]), float(row["sac"])) for row in _rows("ceilings.csv")}


@cache
def _full_state_curves() -> dict[str, list[CurvePoint]]:
    curves: dict[str, list[CurvePoint]] = {}
    for row in _rows("published_full.csv"):
        point = CurvePoint(row["method"], int(row["env_steps"]), float(row["return"]))
        curves.setdefault(row["task"], []).append(point)
    return curves


@cache
def _random_returns() -> dict[str, float]:
    return {split_task(row["task"]).problem: float(row["return"]) for row in _rows("random.csv")}


def _rows(name: str) -> Iterator[dict[str, str]]:
    text = (resources.files("mulv.bench") / "data" / name).read_text()
    return csv.DictReader(line for line in text.splitlines() if not line.startswith("#"))
