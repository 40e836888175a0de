"""Checksums of a replay's rows, stored with each checkpoint, to detect damaged files when resuming.

Each column of each lane (environment) has one sum per block of rows. A checkpoint stores the sums of exactly
the rows that it covers: of the oldest block the part that is still kept, then whole blocks, then the newest
rows. Rows never change once written, so each is summed only once. Only two parts are summed again at every
checkpoint: that of the oldest block, and the newest row, which resuming may still change.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np

from mulv.core.errors import MulvError
from mulv.data.layout import ReplayLayout

BLOCK_BYTES, BLOCK_ROWS = 2**20, 4096  # upper limits of a block's size

Read = Callable[[str, int, np.ndarray], np.ndarray]  # (column, lane, t) to the values of these rows
_Rows = Callable[[int, int], memoryview]  # (first, end) to the bytes of these rows, of one column and lane


class RowSums:
    """The sums of all columns and lanes that have been computed so far."""

    def __init__(self, layout: ReplayLayout):
        rows = layout.ring * layout.lanes
        blocks = {
            name: int(np.clip(BLOCK_BYTES * rows // max(size, 1), 1, BLOCK_ROWS))
            for name, size in layout.file_sizes.items()
        }
        self._start(blocks, layout.lanes)

    def _start(self, blocks: dict[str, int], lanes: int) -> None:
        self._blocks = blocks
        self._lanes = {(name, i): LaneSums(blocks[name]) for name in blocks for i in range(lanes)}

    def record(self, read: Read, first: np.ndarray, end: np.ndarray) -> dict[str, Any]:
        """The sums of rows first ≤ t < end of each lane, as JSON types."""
        sums: dict[str, list[list[int]]] = {name: [] for name in self._blocks}
        for (name, lane), known in self._lanes.items():
            sums[name].append(known.of(int(first[lane]), int(end[lane]), _rows_of(read, name, lane)))
        return {"first": first.tolist(), "end": end.tolist(), "block": dict(self._blocks), "crc32": sums}

    def verify(self, read: Read, record: dict[str, Any], directory: Path) -> None:
        """Sum the rows of a record again; an error names the file and rows where a sum differs."""
        self._start(record["block"], len(record["end"]))
        damaged = []
        for (name, lane), known in self._lanes.items():
            first, end, rows = record["first"][lane], record["end"][lane], _rows_of(read, name, lane)
            saved, found = record["crc32"][name][lane], known.of(first, end, rows)
            if name == "truncated" and saved != found:
                found = known.of(first, end, _before_resume(read, lane, end))
            edges = known.edges(first, end)
            for start, stop, was, now in zip(edges[:-1], edges[1:], saved, found, strict=True):
                if was != now:
                    damaged.append(f"{directory / name}.bin is damaged in rows {start} to {stop - 1}")
                    damaged[-1] += f" of lane {lane}" * (len(record["end"]) > 1)
        if damaged:
            more = f" (and {len(damaged) - 1} more places are)" if len(damaged) > 1 else ""
            raise MulvError(
                f"{damaged[0]}{more}: what is there is not what was written; restore the file from a copy, "
                "remove the checkpoints that are newer than those rows, or start a new run"
            )


class LaneSums:
    """The sums of one column of one lane, in blocks of `block` rows."""

    def __init__(self, block: int):
        self._block = block
        self._whole: dict[int, int] = {}  # block number to its sum, of whole blocks
        self._until, self._sum = 0, 0  # all rows before `_until` are summed; sum of the last, partial block

    def edges(self, first: int, end: int) -> list[int]:
        """Limits of the parts into which rows first ≤ t < end are divided."""
        return [first, *range((first // self._block + 1) * self._block, end, self._block), end]

    def of(self, first: int, end: int, rows: _Rows) -> list[int]:
        """The sum of each part of rows first ≤ t < end."""
        inner = -(-first // self._block) * self._block
        if inner >= end:
            return [crc32(rows(first, end))]
        oldest = [crc32(rows(first, inner))] if first < inner else []
        self._go_on(inner, end - 1, rows)
        self._whole = {number: self._whole[number] for number in range(inner // self._block, self._number)}
        return [*oldest, *self._whole.values(), crc32(rows(end - 1, end), self._sum)]

    @property
    def _number(self) -> int:
        """The number of the block that is not complete yet."""
        return self._until // self._block

    def _go_on(self, inner: int, end: int, rows: _Rows) -> None:
        """Sum rows up to `end`, from where the last call stopped, or else from `inner`, a block's start."""
        if not inner <= self._until <= end:
            self._whole, self._until, self._sum = {}, inner, 0
        while self._until < end:
            until = min((self._number + 1) * self._block, end)
            self._sum = crc32(rows(self._until, until), self._sum)
            self._until = until
            if until % self._block == 0:
                self._whole[self._number - 1], self._sum = self._sum, 0


def _rows_of(read: Read, name: str, lane: int) -> _Rows:
    return lambda first, end: read(name, lane, np.arange(first, end)).data


def _before_resume(read: Read, lane: int, end: int) -> _Rows:
    """The column `truncated` without the mark that resuming sets at the newest row.

    A run that is resumed from the same checkpoint a second time finds this mark of the first time. It may be
    ignored, because resuming sets it again.
    """

    def rows(first: int, until: int) -> memoryview:
        found = read("truncated", lane, np.arange(first, until)).view(np.uint8)
        if until == end and first < end and found[-1] == 1:
            newest = np.array([end - 1])
            found[-1] = read("step", lane, newest)[0] == 0 or read("terminated", lane, newest)[0]
        return found.data

    return rows
