"""A result line: one finished run, and what keeps a line from being one."""

import itertools
import json
import math
from pathlib import Path
from typing import Any

from mulv.core.errors import MulvError

Result = dict[str, Any]  # a result line

FIELDS: dict[str, type | tuple[type, ...]] = {
    "suite": str,
    "method": str,
    "task": str,
    "seed": int,
    "env_steps": int,
    "eval_env_steps": list,
    "eval_returns": list,
    "config": dict,
    "config_hash": str,
    "commit": str,
    "versions": dict,
    "wall_s": (int, float),
}


def parse_line(line: str | bytes, where: str) -> Result:
    """The run of a line; what is wrong with it is said with where it is."""
    try:
        result: Result = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise MulvError(f"{where} is damaged ({error})") from error
    if fault := _fault(result):
        raise MulvError(f"{where} is not a result line: {fault}")
    return result


def read_result(run: Path) -> Result:
    """The result line that a run directory holds."""
    file = run / "result.json"
    if not file.exists():
        raise MulvError(f"{run} holds no finished run: there is no {file}")
    return parse_line(file.read_bytes(), str(file))


def axis_of(result: Result) -> str:
    """What a run's evaluations are told apart by: updates where it learned from data alone at first."""
    return "eval_updates" if "eval_updates" in result else "eval_env_steps"


def length_of(result: Result) -> tuple[int, str]:
    """How long a run was, and of what."""
    offline = axis_of(result) == "eval_updates"
    return (result["updates"], "updates") if offline else (result["env_steps"], "environment steps")


def _fault(result: Any) -> str | None:
    """What keeps a line from being a result, if anything does."""
    if not isinstance(result, dict):
        return "it is no object"
    for name, kind in FIELDS.items():
        if name not in result:
            return f"{name} is missing"
        if not isinstance(result[name], kind):
            return f"{name} is {result[name]!r:.40}"
    axis, returns, success = axis_of(result), result["eval_returns"], result.get("eval_success")
    steps = result.get(axis)
    if not isinstance(steps, list) or not _grows(steps):
        return f"{axis} does not grow"
    for name, table in (("eval_returns", returns), ("eval_success", success)):
        if table is None and name == "eval_success":
            continue
        if not isinstance(table, list) or len(table) != len(steps):
            return f"{name} has not one entry for each of {axis}"
        if not all(isinstance(episodes, list) and episodes and _numbers(episodes) for episodes in table):
            return f"{name} holds something other than lists of finite numbers"
    return None


def _grows(values: list[Any]) -> bool:
    return _numbers(values) and all(a < b for a, b in itertools.pairwise(values))


def _numbers(values: list[Any]) -> bool:
    return all(isinstance(value, int | float) and math.isfinite(value) for value in values)
