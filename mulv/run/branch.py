"""Branches: a new run that starts where another one was, with other options.

It asks "what would have got it off this plateau" at the price of the steps that follow alone.
"""

import json
import shutil
from dataclasses import asdict, dataclass
from pathlib import Path

from mulv.core.errors import MulvError
from mulv.run import checkpoint
from mulv.run.config import RunConfig
from mulv.run.directory import RunDirectory

FIXED = (
    "task",
    "algo",
    "keep",
    "num_envs",
    "action_repeat",
    "data",
    "offline_updates",
)  # what the replay is of
RECORDS = ("metrics.jsonl", "evaluations.jsonl", "evaluations.npz", "dataset.json", "latent_projection.npz")


@dataclass(frozen=True)
class Origin:
    """Where a branch came from."""

    run: str
    step: int
    replay: bool  # whether it goes on with the run's experience, or with its weights alone


def branch(source: Path, config: RunConfig, path: Path, at: int | None = None) -> Origin:
    """Make `path` a run directory that `train(config, path, resume=True)` takes up; gives where it came from.

    Weights, optimisers, counters and random streams are those of the newest checkpoint of `source`, or of the
    one `at` a step. Where `source` has its replay, that is copied (a linked file would take rows of both
    runs); where it has none, as what `save` wrote, the new run collects experience by the loaded policy.
    """
    old, new = RunDirectory(source), RunDirectory(path)
    saved = old.read_config()
    step = _step(old, at)
    kept = old.checkpoints / f"{step:010d}"
    meta = checkpoint.read_meta(kept)
    origin = Origin(str(source), step, replay=old.replay.is_dir() and "replay_counts" in meta)
    if new.config_file.exists():
        raise MulvError(f"{path} already holds a run; choose another --out")
    if origin.replay:
        for name in FIXED:
            if getattr(saved, name) != getattr(config, name):
                raise MulvError(
                    f"{name} is {getattr(saved, name)} in {source}, whose experience a branch goes on with, "
                    f"and {getattr(config, name)} here; start a new run for that"
                )
        if (config.total_steps or 0) <= meta["counters"]["env_steps"]:
            raise MulvError(
                f"{source} is {meta['counters']['env_steps']:,} steps long there; "
                "say with --total-steps how long the branch is in all"
            )
    with new:
        if origin.replay:
            shutil.copytree(old.replay, new.replay)
            shutil.copytree(kept, new.checkpoints / kept.name)
            for name in RECORDS:
                if (source / name).exists():
                    shutil.copy2(source / name, path / name)
        else:
            shutil.copytree(kept, new.initial)
        new.origin_file.write_text(json.dumps(asdict(origin)))
        new.write_config(config)  # last: without it the directory is no run
    return origin


def read_origin(directory: RunDirectory) -> Origin | None:
    """Where a run was branched from, if it was."""
    try:
        return Origin(**json.loads(directory.origin_file.read_text()))
    except FileNotFoundError:
        return None
    except (ValueError, TypeError) as error:
        raise MulvError(f"{directory.origin_file} cannot be read: {error}") from error


def _step(directory: RunDirectory, at: int | None) -> int:
    steps = checkpoint.saved_steps(directory.checkpoints)
    if not steps:
        raise MulvError(f"{directory.path} has no checkpoint to branch from")
    if at is not None and at not in steps:
        there = ", ".join(map(str, steps))
        raise MulvError(f"{directory.path} has no checkpoint at step {at}; there are: {there}")
    return steps[-1] if at is None else at
