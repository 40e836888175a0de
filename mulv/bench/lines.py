"""Reads result lines, one finished run each, and checks them."""

import itertools
import json
import math
import typing
from pathlib import Path
from typing import Any

from mulv.core.errors import MulvError
from mulv.run.result import RunResult

# The required fields of a line and their types; JSON has only one type of number.
_HINTS = typing.get_type_hints(RunResult)
FIELDS = {
    name: (int, float) if _HINTS[name] is float else typing.get_origin(_HINTS[name]) or _HINTS[name]
    for name in RunResult.__annotations__
    if name in RunResult.__required_keys__
}


def parse_line(line: str | bytes, where: str) -> RunResult:
    """The run of a line; a bad line is an error that names the fault and `where` it is."""
    try:
        result = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise MulvError(f"{where} is damaged ({error})") from error
    if fault := _fault(result):
        raise MulvError(f"{where} is not a result line: {fault}")
    return result


def read_result(run: Path) -> RunResult:
    """The result line of a run directory."""
    file = run / "result.json"
    if not file.exists():
        raise MulvError(f"{run} holds no finished run: there is no {file}")
    return parse_line(file.read_bytes(), str(file))


def axis_of(result: RunResult) -> list[int]:
    """The x-axis of a run's evaluations: updates if it has offline updates, else environment steps."""
    return result.get("eval_updates") or result["eval_env_steps"]


def length_of(result: RunResult) -> tuple[int, str]:
    """The length of a run, and its unit."""
    offline = "eval_updates" in result
    return (result["updates"], "updates") if offline else (result["env_steps"], "environment steps")


def _fault(result: Any) -> str | None:
    """Why a line is not a valid result; None if it is."""
    if not isinstance(result, dict):
        return "it is no object"
    for name, kind in FIELDS.items():
        if name not in result:
            return f"{name} is missing"
        if not isinstance(result[name], kind):
            return f"{name} is {result[name]!r:.40}"
    axis = "eval_updates" if "eval_updates" in result else "eval_env_steps"
    returns, success = result["eval_returns"], result.get("eval_success")
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
