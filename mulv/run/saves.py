"""Saved agents: a directory with a configuration and one checkpoint, written atomically."""

import shutil
from pathlib import Path

from mulv.core.errors import MulvError
from mulv.core.types import PyTree
from mulv.run import checkpoint
from mulv.run.config import RunConfig
from mulv.run.directory import RunDirectory

CONTENT = {"config.json", "checkpoints", "lock"}


def write_save(directory: Path, config: RunConfig, state: PyTree, env_steps: int) -> Path:
    """Write an agent to `directory`; an agent saved there is replaced, any other content is an error."""
    if directory.exists():
        if not directory.is_dir():
            raise MulvError(f"{directory} is a file; save the agent to a directory")
        if others := sorted({path.name for path in directory.iterdir()} - CONTENT):
            raise MulvError(
                f"{directory} holds {others[0]}, so it is no saved agent; save to another directory"
            )
    aside, old = (directory.with_name(f".{directory.name}.{word}") for word in ("writing", "old"))
    for path in (aside, old):
        shutil.rmtree(path, ignore_errors=True)
    with RunDirectory(aside) as run:
        run.write_config(config)
        meta = {"counters": {"env_steps": env_steps}}
        checkpoint.save(run.checkpoints, env_steps, state, meta, keep=1)
    if directory.exists():
        directory.rename(old)
    aside.rename(directory)
    shutil.rmtree(old, ignore_errors=True)
    return directory
