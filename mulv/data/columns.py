"""A replay's files, one per column: columns of small rows are memory-mapped, frames are not."""

import mmap
import os
import shutil
import weakref
from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import numpy as np

from mulv.core.errors import MulvError
from mulv.data.layout import ReplayLayout

Mode = Literal["r", "r+"]  # read only, or read and write
LARGE = 4096  # columns with rows of at least this many bytes are not mapped


class AbstractColumn(ABC):
    """A file with one value per row."""

    @abstractmethod
    def take(self, at: np.ndarray) -> np.ndarray:
        """Copies of the rows at positions `at`; the result has the shape of `at`, then that of a row."""

    @abstractmethod
    def put(self, at: np.ndarray, values: np.ndarray) -> None:
        """Write values to the rows at positions `at`."""

    @abstractmethod
    def flush(self) -> None:
        """Write all rows to disk."""


class MappedColumn(AbstractColumn):
    """A memory-mapped file as a plain array; indexing `np.memmap` is several times slower."""

    def __init__(self, path: Path, dtype: str, shape: tuple[int, ...], mode: Mode):
        size = np.dtype(dtype).itemsize * int(np.prod(shape, dtype=int))
        access = mmap.ACCESS_WRITE if mode == "r+" else mmap.ACCESS_READ
        with path.open(f"{mode}b") as file:
            self._map = mmap.mmap(file.fileno(), size, access=access)
        self.rows = np.frombuffer(self._map, dtype).reshape(shape)

    def take(self, at: np.ndarray) -> np.ndarray:
        return self.rows[at]

    def put(self, at: np.ndarray, values: np.ndarray) -> None:
        self.rows[at] = values

    def flush(self) -> None:
        self._map.flush()


class FrameColumn(AbstractColumn):
    """Frames in a file that is read and written by position; the kernel still caches it.

    Mapped pages count as memory of this process once they are touched, and the kernel maps more than was
    read. A mapped replay of a million frames would soon seem to use all of the machine's memory.
    """

    def __init__(self, path: Path, dtype: str, shape: tuple[int, ...], mode: Mode):
        self._file = os.open(path, os.O_RDWR if mode == "r+" else os.O_RDONLY)
        weakref.finalize(self, os.close, self._file)
        self._dtype, self._row = np.dtype(dtype), shape[1:]
        self._size = self._dtype.itemsize * int(np.prod(self._row, dtype=int))

    def take(self, at: np.ndarray) -> np.ndarray:
        values = np.empty((*at.shape, *self._row), self._dtype)
        view = values.data.cast("B")
        for first, last, row in _runs(at):
            wanted = view[first * self._size : last * self._size]
            if os.preadv(self._file, [wanted], row * self._size) != len(wanted):
                raise MulvError(f"the replay's frames end before row {row + last - first}: a file is damaged")
        return values

    def put(self, at: np.ndarray, values: np.ndarray) -> None:
        view = np.ascontiguousarray(values, self._dtype).data.cast("B")
        for first, last, row in _runs(at):
            os.pwrite(self._file, view[first * self._size : last * self._size], row * self._size)

    def flush(self) -> None:
        os.fsync(self._file)


def _runs(at: np.ndarray) -> Iterator[tuple[int, int, int]]:
    """Runs of consecutive rows in `at`: index of the first, index after the last, row of the first."""
    flat = at.ravel()
    firsts = np.flatnonzero(np.diff(flat, prepend=-2) != 1)
    yield from zip(firsts.tolist(), [*firsts[1:].tolist(), flat.size], flat[firsts].tolist(), strict=True)


def open_columns(directory: Path, layout: ReplayLayout, mode: Mode) -> dict[str, AbstractColumn]:
    """The columns of a layout by name; their files must exist."""
    columns: dict[str, AbstractColumn] = {}
    for name, (dtype, shape) in layout.columns.items():
        rows = layout.ring * layout.lanes
        kind = FrameColumn if layout.file_sizes[name] >= rows * LARGE else MappedColumn
        columns[name] = kind(directory / f"{name}.bin", dtype, (rows, *shape), mode)
    return columns


def reserve(directory: Path, layout: ReplayLayout) -> None:
    """Allocate every file on disk, so that a full disk is an error here and not in mid-run."""
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
            # Writing to a mapped sparse file on a full disk would crash the process.
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(file.fileno(), 0, size)
            file.truncate(size)
