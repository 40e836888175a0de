"""The result line: one finished run as JSON, defined once."""

from collections.abc import Sequence
from typing import Any, NotRequired, TypedDict

import numpy as np

from mulv.run.config import RunConfig, config_hash, to_json
from mulv.run.counters import Counters
from mulv.run.directory import commit, versions


class RunResult(TypedDict):
    """A finished run. Lists named `eval_…` have one entry per evaluation, oldest first."""

    suite: str
    method: str
    task: str
    seed: int
    env_steps: int
    updates: NotRequired[int]
    eval_env_steps: list[int]
    eval_updates: NotRequired[list[int]]  # only of runs with offline updates: updates at each evaluation
    eval_returns: list[list[float]]  # of every episode
    eval_success: NotRequired[list[list[bool]] | None]  # None if the task reports no success
    final_mean: NotRequired[float | None]  # mean return of the last evaluation
    config: dict[str, Any]
    config_hash: str
    commit: str
    versions: dict[str, str]
    wall_s: float
    code: NotRequired[str]  # hash of the code that decides a run's outcome; only of runs in a sweep
    dataset: NotRequired[dict[str, Any]]
    branched_from: NotRequired[dict[str, Any]]
    vmap_seeds: NotRequired[int]  # how many runs trained in one process
    threads: NotRequired[int]
    state_sha256: NotRequired[str]  # of the agent's arrays at the end of the run


def run_result(
    config: RunConfig, counters: Counters, evaluations: Sequence[dict[str, Any]], *, wall_s: float
) -> RunResult:
    """The result line of a run that is not part of a suite."""
    successes = [evaluation["successes"] for evaluation in evaluations]
    result = RunResult(
        suite="single",
        method=config.algo,
        task=config.task,
        seed=config.seed,
        env_steps=counters.env_steps,
        updates=counters.updates,
        eval_env_steps=[evaluation["env_steps"] for evaluation in evaluations],
        eval_returns=[evaluation["returns"] for evaluation in evaluations],
        eval_success=successes if successes and None not in successes else None,
        final_mean=float(np.mean(evaluations[-1]["returns"])) if evaluations else None,
        config=to_json(config),
        config_hash=config_hash(config),
        commit=commit(),
        versions=versions(),
        wall_s=round(wall_s, 1),
    )
    if config.offline_updates:
        result["eval_updates"] = [evaluation["updates"] for evaluation in evaluations]
    return result
