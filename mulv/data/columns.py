"""A replay's files, one a column, memory-mapped."""

import mmap
import os
import shutil
from pathlib import Path

import numpy as np

from mulv.core.errors import MulvError
from mulv.data.layout import ReplayLayout

RESIDENT = 1 << 30  # bytes of files that may count as this process's memory
FAULT = 1 << 16  # bytes that the kernel maps around one that is touched


class Columns:
    """`rows[name]` is a plain array over a column's file; indexing NumPy's memmap costs several times more.

    Pages that were touched count as memory of this process until they are let go, although the kernel would
    take them back when it needs them. Of files larger than RESIDENT they are let go from time to time: what
    they hold stays in the kernel's cache, and on the disk.
    """

    def __init__(self, directory: Path, layout: ReplayLayout):
        self.rows: dict[str, np.ndarray] = {}
        self._maps: dict[str, mmap.mmap] = {}
        self._touched, self._counts_touches = 0, layout.nbytes > RESIDENT
        for name, (dtype, shape) in layout.columns.items():
            with (directory / f"{name}.bin").open("r+b") as file:
                self._maps[name] = mmap.mmap(file.fileno(), layout.file_sizes[name])
            rows = np.frombuffer(self._maps[name], dtype)
            self.rows[name] = rows.reshape(layout.ring * layout.lanes, *shape)

    def take(self, name: str, at: np.ndarray) -> np.ndarray:
        """Copies of rows."""
        column = self.rows[name]
        self._touch(at.size, column)
        return column.take(at, axis=0)  # several times as fast as column[at] for frames

    def put(self, name: str, at: np.ndarray, values: np.ndarray) -> None:
        """Write rows."""
        column = self.rows[name]
        self._touch(at.size, column)
        column[at] = values

    def flush(self) -> None:
        """Bring every row to the disk."""
        for each in self._maps.values():
            each.flush()

    def _touch(self, rows: int, column: np.ndarray) -> None:
        if not self._counts_touches:
            return
        self._touched += rows * (column.strides[0] + FAULT)
        if self._touched > RESIDENT:
            self._touched = 0
            for each in self._maps.values():
                each.madvise(mmap.MADV_DONTNEED)


def reserve(directory: Path, layout: ReplayLayout) -> None:
    """Claim every file's blocks, so that a full disk is met here and not mid-run."""
    files = {directory / f"{name}.bin": size for name, size in layout.file_sizes.items()}
    needed = sum(size - (path.stat().st_size if path.exists() else 0) for path, size in files.items())
    free = shutil.disk_usage(directory).free
    if needed > free:
        raise MulvError(
            f"the replay needs {needed / 1e9:.2f} GB and {directory} has {free / 1e9:.2f} GB free; "
            "lower --replay-capacity or choose another --out"
        )
    for path, size in files.items():
        with path.open("ab") as file:
            # A sparse file would meet a full disk as a crash inside a memory write.
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(file.fileno(), 0, size)
            file.truncate(size)
