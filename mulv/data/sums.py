"""Checksums of a replay's rows, kept with each checkpoint: they tell damaged files from what was written.

The rows of a lane are summed in blocks of their logical time, each column for itself. A checkpoint has the
sums of exactly the rows that it counts: of the oldest block the part that is kept, then whole blocks, then
the rows since. Rows never change once written, so that each is summed once and not at every checkpoint; only
the part of the oldest block is summed anew, and the newest row, which resuming may still change.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np

from mulv.core.errors import MulvError
from mulv.data.layout import ReplayLayout

BLOCK_BYTES, BLOCK_ROWS = 2**20, 4096  # a block has at most so many of either

Read = Callable[[str, int, np.ndarray], np.ndarray]  # what rows t of a lane hold in a column
_Rows = Callable[[int, int], memoryview]  # the rows from one until another, of one column and lane


class RowSums:
    """The sums of all columns and lanes, as far as they are known."""

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
        """The sums of rows first ≤ t < end of each lane, as JSON has them."""
        sums: dict[str, list[list[int]]] = {name: [] for name in self._blocks}
        for (name, lane), known in self._lanes.items():
            sums[name].append(known.of(int(first[lane]), int(end[lane]), _rows_of(read, name, lane)))
        return {"first": first.tolist(), "end": end.tolist(), "block": dict(self._blocks), "crc32": sums}

    def verify(self, read: Read, record: dict[str, Any], directory: Path) -> None:
        """Sum the rows of a record again, and refuse them where a sum differs."""
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
    """The sums of one column of one lane, in blocks of so many rows."""

    def __init__(self, block: int):
        self._block = block
        self._whole: dict[int, int] = {}  # of each whole block, by its number
        self._until, self._sum = 0, 0  # all rows before are summed; those after the last whole block so far

    def edges(self, first: int, end: int) -> list[int]:
        """Where the parts begin and end that rows first ≤ t < end are summed in."""
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
        """Of the block that is not whole yet."""
        return self._until // self._block

    def _go_on(self, inner: int, end: int, rows: _Rows) -> None:
        """Sum rows up to `end`, from where that was done last or else from `inner`, which begins a block."""
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
    """`truncated` without the mark that a resumed run leaves at the newest row of an episode it cuts off.

    Who resumes from a checkpoint a second time finds that mark. To resume is to set it, so that nothing is
    lost by overlooking it.
    """

    def rows(first: int, until: int) -> memoryview:
        found = read("truncated", lane, np.arange(first, until)).view(np.uint8)
        if until == end and first < end and found[-1] == 1:
            newest = np.array([end - 1])
            found[-1] = read("step", lane, newest)[0] == 0 or read("terminated", lane, newest)[0]
        return found.data

    return rows
