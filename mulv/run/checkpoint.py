"""Checkpoints: arrays and JSON with checksums, written to a temporary directory that is synced and renamed.

No pickle is used. A checkpoint is a directory named after `Counters.clock`, which counts environment steps:
    arrays.npz   the agent's state, one array per leaf, named by its path
    meta.json    counters, random states, positions in the run's other files
    SHA256SUMS   checksums of the two, in sha256sum's own format
"""

import errno
import hashlib
import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

import jax
import numpy as np

from mulv.core.errors import CheckpointError, MulvError, NonFiniteError
from mulv.core.types import PyTree

ASIDE = ".writing-"


def named_leaves(tree: PyTree) -> dict[str, np.ndarray]:
    """The arrays of a tree by their paths, such as `actor/params/head/weight`."""
    flat, _ = jax.tree_util.tree_flatten_with_path(tree)
    return {jax.tree_util.keystr(path, simple=True, separator="/"): np.asarray(leaf) for path, leaf in flat}


def non_finite_leaves(tree: PyTree) -> list[str]:
    """Paths of the arrays that hold a NaN or an infinity."""
    return [
        name
        for name, leaf in named_leaves(tree).items()
        if np.issubdtype(leaf.dtype, np.inexact) and not np.isfinite(leaf).all()
    ]


def save(directory: Path, env_steps: int, state: PyTree, meta: dict[str, Any], *, keep: int) -> Path:
    """Write a checkpoint, then delete all but the newest `keep`; if writing fails, nothing is deleted."""
    if bad := non_finite_leaves(state):
        raise NonFiniteError(f"not saved: {', '.join(bad[:3])} holds NaN or inf at env step {env_steps}")
    directory.mkdir(parents=True, exist_ok=True)
    aside = directory / f"{ASIDE}{env_steps:010d}"
    final = directory / f"{env_steps:010d}"
    try:
        shutil.rmtree(aside, ignore_errors=True)
        aside.mkdir()
        with (aside / "arrays.npz").open("wb") as file:
            np.savez(file, **named_leaves(state))  # type: ignore[arg-type]
        (aside / "meta.json").write_text(json.dumps(meta))
        sums = "".join(f"{_sha256(aside / n)}  {n}\n" for n in ("arrays.npz", "meta.json"))
        (aside / "SHA256SUMS").write_text(sums)
        for path in (*aside.iterdir(), aside):
            _sync(path)
        shutil.rmtree(final, ignore_errors=True)  # a signal just after a save saves the same step again
        aside.rename(final)
        _sync(directory)
    except OSError as error:
        shutil.rmtree(aside, ignore_errors=True)
        if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise
        steps = saved_steps(directory)
        intact = f"the one at step {steps[-1]} is intact" if steps else "there is none yet"
        raise MulvError(
            f"the disk is full: no checkpoint at step {env_steps}, {intact}; free some space"
        ) from error
    for step in saved_steps(directory)[:-keep]:
        shutil.rmtree(directory / f"{step:010d}")
    return final


def saved_steps(directory: Path) -> list[int]:
    """Environment steps of the checkpoints in a directory, oldest first."""
    if not directory.is_dir():
        return []
    return sorted(int(path.name) for path in directory.iterdir() if path.name.isdigit())


def load(path: Path, like: PyTree) -> tuple[PyTree, dict[str, Any]]:
    """A checkpoint's state, in the structure of `like`, and its meta; CheckpointError if it does not fit."""
    meta = read_meta(path)
    arrays = _read_arrays(path / "arrays.npz")
    flat, structure = jax.tree_util.tree_flatten_with_path(like)
    leaves = []
    for key_path, leaf in flat:
        name = jax.tree_util.keystr(key_path, simple=True, separator="/")
        if name not in arrays:
            raise CheckpointError(f"{path} has no array {name}: it was written by a different agent")
        array = arrays.pop(name)
        if array.shape != leaf.shape or array.dtype != leaf.dtype:
            raise CheckpointError(
                f"{path}: {name} is {array.dtype}{array.shape}, this agent's is {leaf.dtype}{leaf.shape}"
            )
        leaves.append(jax.numpy.asarray(array))
    if arrays:
        raise CheckpointError(f"{path} has arrays this agent lacks: {', '.join(sorted(arrays)[:3])}")
    return jax.tree_util.tree_unflatten(structure, leaves), meta


def read_meta(path: Path) -> dict[str, Any]:
    """A checkpoint's meta, after its checksums have been verified."""
    _verify(path)
    return json.loads((path / "meta.json").read_text())


def load_latest(directory: Path, like: PyTree) -> tuple[PyTree, dict[str, Any], Path]:
    """State, meta and path of the newest intact checkpoint; damaged ones are reported and skipped."""
    for step in reversed(saved_steps(directory)):
        path = directory / f"{step:010d}"
        try:
            return *load(path, like), path
        except CheckpointError as error:
            print(f"mulv: {error}; trying the one before", file=sys.stderr)
    raise CheckpointError(f"{directory} holds no checkpoint that can be read")


def remove_leftovers(directory: Path) -> None:
    """Delete incomplete checkpoints of a process that was killed while writing."""
    for path in directory.glob(f"{ASIDE}*"):
        shutil.rmtree(path, ignore_errors=True)


def _verify(path: Path) -> None:
    try:
        expected = dict(line.split("  ")[::-1] for line in (path / "SHA256SUMS").read_text().splitlines())
        for name in ("arrays.npz", "meta.json"):
            if _sha256(path / name) != expected.get(name):
                raise CheckpointError(f"{path / name} is damaged (its checksum does not match)")
    except (OSError, ValueError) as error:
        raise CheckpointError(f"{path} is not a whole checkpoint: {error}") from error


def _read_arrays(path: Path) -> dict[str, np.ndarray]:
    try:
        with np.load(path, allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}
    except Exception as error:  # zipfile and NumPy raise many kinds on a file that is not an archive
        raise CheckpointError(f"{path} does not hold plain arrays: {error}") from error


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
