"""Branches: a new run that starts from a checkpoint of another one, with other options.

So a change can be tried late in training, for instance on a plateau, without repeating the steps before.
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
)  # fields that the copied replay depends on
RECORDS = ("metrics.jsonl", "evaluations.jsonl", "evaluations.npz", "dataset.json", "latent_projection.npz")


@dataclass(frozen=True)
class Origin:
    """Where a branch came from."""

    run: str
    step: int
    replay: bool  # whether the replay was copied too, or only the weights


def branch(source: Path, config: RunConfig, path: Path, at: int | None = None) -> Origin:
    """Make `path` a run directory for `train(config, path, resume=True)`; returns the branch's origin.

    Weights, optimisers, counters and random streams are those of the newest checkpoint of `source`, or of the
    one at step `at`. A replay in `source` is copied (both runs would write to a linked file). Without one, as
    in a saved agent, only the weights are used, and the new run collects experience with the loaded policy.
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
        new.write_config(config)  # last: without this file the directory is not a run
    return origin


def read_origin(directory: RunDirectory) -> Origin | None:
    """The origin of a branched run; None for any other run."""
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
