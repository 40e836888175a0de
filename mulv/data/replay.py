"""The replay: files on disk with one row per step; windows are cut by index arithmetic.

A lane is the index of an environment in the vector environment; each lane has its own ring buffer of rows.
A row's time t counts all rows that its lane has ever written. Its position in the files is t modulo the
ring's length, with the lanes interleaved. Rows of an episode are consecutive and `step` counts them from 0,
so rows t and t+i are of the same episode if step[t+i] = step[t] + i. The ring is longer than the capacity
by a slack, so that rows of a checkpoint are not overwritten by those written between it and a crash.
"""

import json
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from mulv.core.errors import MulvError
from mulv.core.spec import BatchSpec, SequenceSpec, Step
from mulv.core.types import Batch, Future, SequenceBatch, Window
from mulv.data.columns import MappedColumn, open_columns, reserve
from mulv.data.files import written_aside
from mulv.data.layout import ReplayLayout
from mulv.data.sequences import draw_starts
from mulv.data.sums import RowSums

_ObsAt = Callable[[np.ndarray], np.ndarray]  # positions to copies of their observations


class Replay:
    """Rows on disk, and how many each lane wrote. Only `append`, `extend` and `mark_truncated` change it."""

    def __init__(
        self, directory: Path, layout: ReplayLayout, counts: np.ndarray, mode: Literal["r", "r+"] = "r+"
    ):
        self.directory, self.layout = directory, layout
        self.counts = np.asarray(counts, np.int64).copy()
        self._columns = open_columns(directory, layout, mode)
        self._sums = RowSums(layout)
        # The mapped columns as plain arrays, for index arithmetic; frames are not mapped.
        self._rows = {name: c.rows for name, c in self._columns.items() if isinstance(c, MappedColumn)}

    @classmethod
    def create(cls, directory: Path, layout: ReplayLayout) -> "Replay":
        """A new, empty replay; its disk space is allocated at once, so that a full disk is an error here."""
        directory.mkdir(parents=True, exist_ok=True)
        return cls._with_layout(directory, layout, np.zeros(layout.lanes, np.int64))

    @classmethod
    def open(
        cls, directory: Path, counts: np.ndarray | None = None, *, mode: Literal["r", "r+"] = "r+"
    ) -> "Replay":
        """An existing replay, as it was when the lanes had written `counts` rows, or at its last flush."""
        try:
            saved = json.loads((directory / "layout.json").read_text())
            layout = ReplayLayout(**{**saved["layout"], "obs_shape": tuple(saved["layout"]["obs_shape"])})
            for name, size in layout.file_sizes.items():
                if (directory / f"{name}.bin").stat().st_size < size:
                    raise MulvError(f"{directory / name}.bin is damaged: it is shorter than its {size} bytes")
            return cls(directory, layout, np.asarray(saved["counts"]) if counts is None else counts, mode)
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise MulvError(f"the replay in {directory} cannot be read: {error}") from error

    def enlarged(self, layout: ReplayLayout) -> "Replay":
        """The same rows in a larger replay; an error if rows have already been overwritten."""
        if replace(layout, capacity=self.layout.capacity, slack=self.layout.slack) != self.layout:
            raise MulvError(f"the replay in {self.directory} is of another environment: {self.layout}")
        if layout.ring <= self.layout.ring:
            return self
        if (self.counts > self.layout.capacity).any():
            raise MulvError(f"the replay in {self.directory} has come round and cannot grow any more")
        self.flush()
        larger = self._with_layout(self.directory, layout, self.counts)
        larger._sums = self._sums  # the rows are the same
        return larger

    @classmethod
    def _with_layout(cls, directory: Path, layout: ReplayLayout, counts: np.ndarray) -> "Replay":
        reserve(directory, layout)
        replay = cls(directory, layout, counts)
        replay.flush()
        return replay

    def __len__(self) -> int:
        """The number of rows that batches are sampled from, over all lanes."""
        return int(np.minimum(self.counts, self.layout.capacity).sum())

    def append(self, rows: Step) -> None:
        """Write one row for each lane in `rows`."""
        kept = self.layout
        if rows.obs.shape[1:] != kept.obs_shape or rows.obs.dtype != kept.obs_dtype:
            raise MulvError(
                f"an observation is {rows.obs.shape[1:]} of {rows.obs.dtype}; "
                f"this replay keeps {kept.obs_shape} of {kept.obs_dtype}"
            )
        at = self._at(rows.lane, self.counts[rows.lane])
        for name, column in self._columns.items():
            column.put(at, getattr(rows, name))
        self.counts[rows.lane] += 1

    def extend(self, lane: int, rows: Step) -> None:
        """Write many rows to one lane, in order; they must fit in the capacity."""
        at = self._at(np.int64(lane), self.counts[lane] + np.arange(len(rows.step)))
        for name, column in self._columns.items():
            column.put(at, getattr(rows, name))
        self.counts[lane] += len(rows.step)

    def column(self, name: str, lane: int, t: np.ndarray) -> np.ndarray:
        """The values of a column at rows (lane, t)."""
        return self._columns[name].take(self._at(np.int64(lane), t))

    def mark_truncated(self) -> None:
        """Mark every lane's unfinished episode as truncated, because a resumed run starts new ones."""
        for lane in np.flatnonzero(self.counts):
            at = self._at(lane, self.counts[lane] - 1)
            if self._rows["step"][at] > 0 and not self._rows["terminated"][at]:
                self._rows["truncated"][at] = True

    def flush(self) -> None:
        """Write all rows and counts to disk."""
        for column in self._columns.values():
            column.flush()
        layout = {"layout": asdict(self.layout), "counts": self.counts.tolist()}
        with written_aside(self.directory / "layout.json") as aside:
            aside.write_text(json.dumps(layout))

    def checksums(self, rewritten: int = 0) -> dict[str, Any]:
        """Checksums of all rows, as JSON types; a checkpoint stores them for `verify`.

        The newest `rewritten` rows of each lane are left out, because resuming writes them again.
        """
        end = np.maximum(self.counts - rewritten, 0)
        first = np.clip(self.counts - self.layout.capacity, 0, end)
        return self._sums.record(self.column, first, end)

    def verify(self, sums: dict[str, Any] | None) -> None:
        """Raise an error if rows do not have these `checksums`; None, of older runs, checks nothing."""
        if sums is not None:
            self._sums.verify(self.column, sums, self.directory)

    def transitions(self, window: int = 1) -> tuple[np.ndarray, np.ndarray]:
        """Lanes and times t of all transitions that `sample` draws from."""
        low, size = self._eligible(window)
        lane = np.repeat(np.arange(self.layout.lanes), size)
        t = np.concatenate([np.arange(lo, lo + n) for lo, n in zip(low, size, strict=True)])
        keep = self._rows["step"][self._at(lane, t + 1)] > 0
        return lane[keep], t[keep]

    def written_since(self, counts: np.ndarray) -> np.ndarray:
        """Positions of the rows written after each lane's first `counts`, without those overwritten since."""
        oldest = np.maximum(counts, self.counts - self.layout.ring)
        lanes = enumerate(zip(oldest, self.counts, strict=True))
        return np.concatenate([self._at(np.int64(lane), np.arange(*since)) for lane, since in lanes])

    def obs_at(self, at: np.ndarray) -> np.ndarray:
        """The observations at these positions."""
        return self._columns["obs"].take(at)

    def sample(
        self, spec: BatchSpec, batches: int, rng: np.random.Generator, vectors: np.ndarray | None = None
    ) -> Batch:
        """`batches` batches of uniformly drawn transitions; leaves have axes (batches, batch_size, …).

        `vectors`, one per position, replace observations (embeddings replace frames). With `spec.frames`, the
        batch also has the frame o_h of that many windows.
        """
        lane, t = self._draw(spec.window, batches * spec.batch_size, rng)
        flat = self.cut(spec, lane, t, vectors)
        shape = (batches, spec.batch_size)
        batch = _map_batch(flat, lambda leaf: leaf.reshape(shape + leaf.shape[1:]))
        if not spec.frames:
            return batch
        return batch._replace(frames=self.obs_at(self._at(lane, t).reshape(shape)[:, : spec.frames]))

    def cut(
        self, spec: BatchSpec, lane: np.ndarray, t: np.ndarray, vectors: np.ndarray | None = None
    ) -> Batch:
        """The batch of the transitions that start at rows (lane, t)."""
        obs_at = self.obs_at if vectors is None else vectors.__getitem__
        rows, length = self._rows, max(spec.n_step, spec.future)
        step = rows["step"][self._at(lane, t)].astype(np.int64)
        ahead = np.arange(1, length + 1)
        later = t[:, None] + ahead
        at_later = self._at(lane[:, None], later)
        # Rows from `counts` on are not written yet: the ring still holds old rows there.
        real = (rows["step"][at_later] == step[:, None] + ahead) & (later < self.counts[lane][:, None])
        real = np.logical_and.accumulate(real, axis=1)

        rewards = rows["reward"][at_later] * real
        taken = real[:, : spec.n_step].sum(axis=1)  # k: steps until the bootstrap
        powers = (spec.gamma ** np.arange(spec.n_step)).astype(np.float32)
        end = t + taken
        terminated = rows["terminated"][self._at(lane, end)]
        discount = np.where(terminated, 0.0, spec.gamma**taken).astype(np.float32)

        at_future, future_real = at_later[:, : spec.future], real[:, : spec.future]
        future = Future(
            actions=_zero_unless(future_real, rows["action"][at_future]),
            rewards=np.ascontiguousarray(rewards[:, : spec.future]),
            obs=_zero_unless(future_real, obs_at(at_future)),
            mask=future_real,
            terminated=rows["terminated"][at_future] & future_real,
        )
        return Batch(
            x_h=self._windows(spec.window, lane, t, step, obs_at),
            a_h=np.ascontiguousarray(rows["action"][at_later[:, 0]]),
            reward=rewards[:, : spec.n_step] @ powers,
            discount=discount,
            x_hn=self._windows(spec.window, lane, end, step + taken, obs_at),
            future=future,
            data_size=np.full(t.shape, len(self), np.float32),
        )

    def sample_sequences(
        self, spec: SequenceSpec, batches: int, rng: np.random.Generator, vectors: np.ndarray | None = None
    ) -> SequenceBatch:
        """`batches` batches of uniformly drawn sequences; leaves have axes (batches, batch_size, length, …).

        `vectors`, one per position, replace observations.
        """
        number, capacity = batches * spec.batch_size, self.layout.capacity
        lane, t = draw_starts(self.counts, capacity, spec.length, number, rng)
        shape = (batches, spec.batch_size)
        return self.cut_sequences(spec.length, lane.reshape(shape), t.reshape(shape), vectors)

    def cut_sequences(
        self, length: int, lane: np.ndarray, t: np.ndarray, vectors: np.ndarray | None = None
    ) -> SequenceBatch:
        """The sequences of `length` rows that start at rows (lane, t)."""
        rows, at = self._rows, self._at(lane[..., None], t[..., None] + np.arange(length))
        first = rows["step"][at] == 0
        return SequenceBatch(
            obs=self.obs_at(at) if vectors is None else vectors[at],
            action=_zero_unless(~first, rows["action"][at]),
            reward=_zero_unless(~first, rows["reward"][at]),
            terminated=rows["terminated"][at],
            first=first,
        )

    def _windows(
        self, length: int, lane: np.ndarray, t: np.ndarray, step: np.ndarray, obs_at: _ObsAt
    ) -> Window:
        back = np.arange(-length + 1, 1)
        at = self._at(lane[:, None], t[:, None] + back)
        mask = step[:, None] + back >= 0
        obs = _zero_unless(mask, obs_at(at))
        actions = _zero_unless(mask[:, :-1], self._rows["action"][at[:, 1:]])
        return Window(obs, actions, mask, _zero_unless(mask, self._rows["reward"][at]))

    def _at(self, lane: np.ndarray, t: np.ndarray) -> np.ndarray:
        return t % self.layout.ring * self.layout.lanes + lane

    def _eligible(self, window: int) -> tuple[np.ndarray, np.ndarray]:
        """For each lane, the first t with a whole window, and how many rows from there have a successor."""
        oldest = self.counts - self.layout.capacity
        low = np.where(oldest > 0, oldest + window - 1, 0)
        return low, np.maximum(self.counts - 1 - low, 0)

    def _draw(self, window: int, number: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Lanes and times of uniformly drawn transitions; rows that end an episode are drawn again."""
        low, size = self._eligible(window)
        bounds = np.cumsum(size)
        lane, t = np.empty(number, np.int64), np.empty(number, np.int64)
        missing = np.arange(number)
        for _ in range(64):
            if not bounds[-1]:
                break
            drawn = rng.integers(bounds[-1], size=missing.size)
            which = np.searchsorted(bounds, drawn, side="right")
            lane[missing], t[missing] = which, low[which] + drawn - (bounds - size)[which]
            begins = self._rows["step"][self._at(lane[missing], t[missing] + 1)] == 0
            missing = missing[begins]
            if not missing.size:
                return lane, t
        lanes, ts = self.transitions(window)  # almost every row ends an episode: list all transitions
        if not ts.size:
            raise MulvError("the replay holds no transition yet, so there is nothing to sample")
        pick = rng.integers(ts.size, size=missing.size)
        lane[missing], t[missing] = lanes[pick], ts[pick]
        return lane, t


def _zero_unless(mask: np.ndarray, values: np.ndarray) -> np.ndarray:
    values[~mask] = 0
    return values


def _map_batch(batch: Batch, f) -> Batch:  # type: ignore[no-untyped-def]
    """Apply `f` to every leaf; for NumPy leaves this is faster than `jax.tree.map`."""
    return Batch(
        Window(*map(f, batch.x_h)),
        f(batch.a_h),
        f(batch.reward),
        f(batch.discount),
        Window(*map(f, batch.x_hn)),
        Future(*map(f, batch.future)),
        f(batch.data_size),
    )
