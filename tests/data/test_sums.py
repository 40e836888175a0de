"""Checksums of a replay: they follow the rows, whichever way these came to be, and see every bit."""

import json
import tempfile
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mulv.core.errors import MulvError
from mulv.data import Replay, sums
from tests.data.test_replay import MIXED, Row, episode_rows, histories, layout, write

block_rows = st.integers(1, 9)


def small_blocks(rows: int):
    return patch.object(sums, "BLOCK_ROWS", rows)


def record(replay: Replay, rewritten: int = 0) -> dict:
    """As a checkpoint gives it back."""
    replay.flush()
    return json.loads(json.dumps(replay.checksums(rewritten)))


def pieces(lanes: list[list[Row]], number: int) -> list[list[list[Row]]]:
    """The rows of each lane in so many shares, one after the other."""
    edges = [np.linspace(0, len(rows), number + 1).astype(int) for rows in lanes]
    return [[rows[e[i] : e[i + 1]] for rows, e in zip(lanes, edges, strict=True)] for i in range(number)]


def flip(file: Path, bit: int) -> None:
    content = bytearray(file.read_bytes())
    content[bit // 8] ^= 1 << bit % 8
    file.write_bytes(content)


@given(histories, st.integers(3, 30), st.sampled_from([0, 1, 7]), block_rows, st.integers(1, 5))
@settings(max_examples=80)
def test_sums_made_piece_by_piece_equal_those_made_at_once(lanes, capacity, slack, block, number):
    with tempfile.TemporaryDirectory() as directory, small_blocks(block):
        replay = Replay.create(Path(directory), layout(len(lanes), capacity, slack))
        for piece in pieces(lanes, number):
            write(replay, piece)
            made = record(replay)
            assert made == record(Replay.open(Path(directory)))


@given(histories, st.integers(3, 30), block_rows, st.integers(1, 5), st.integers(0, 1))
@settings(max_examples=80)
def test_a_record_still_verifies_once_as_many_rows_were_written_as_the_slack_has(
    lanes, capacity, block, number, rewritten
):
    slack = 8
    with tempfile.TemporaryDirectory() as directory, small_blocks(block):
        replay, records = Replay.create(Path(directory), layout(len(lanes), capacity, slack)), []
        for piece in pieces(lanes, number):
            write(replay, piece)
            records.append((replay.counts.copy(), record(replay, rewritten)))
        for counts, made in records:
            if (replay.counts - counts <= slack).all():
                Replay.open(Path(directory), counts).verify(made)
        counts, newest = records[-1]
        np.testing.assert_array_equal(newest["end"], np.maximum(counts - rewritten, 0))


@given(st.data(), st.integers(3, 30), block_rows)
@settings(max_examples=150)
def test_a_flipped_bit_matters_where_its_row_counts_and_nowhere_else(data, capacity, block):
    lanes = data.draw(histories)
    with tempfile.TemporaryDirectory() as directory, small_blocks(block):
        kept = layout(len(lanes), capacity, slack=3)
        replay = write(Replay.create(Path(directory), kept), lanes)
        made, counts = record(replay), replay.counts
        name = data.draw(st.sampled_from(sorted(kept.columns)))
        bit = data.draw(st.integers(0, 8 * kept.file_sizes[name] - 1))
        place, lane = divmod(bit // 8 * kept.ring * kept.lanes // kept.file_sizes[name], kept.lanes)
        flip(Path(directory) / f"{name}.bin", bit)
        newest = int(counts[lane]) - 1
        t = newest - (newest - place) % kept.ring  # the newest row that was ever written there
        damaged = Replay.open(Path(directory))
        if t < max(newest + 1 - capacity, 0) or newest < 0:
            damaged.verify(made)
            return
        row = lanes[lane][t]
        unfinished = t == newest and row.step > 0 and not (row.terminated or row.truncated)
        if name == "truncated" and unfinished and bit % 8 == 0:  # which resuming would set itself
            damaged.verify(made)
            return
        with pytest.raises(MulvError, match=rf"{name}.bin is damaged in rows \d+ to \d+") as error:
            damaged.verify(made)
    words = str(error.value).split()
    first, last = int(words[words.index("rows") + 1]), int(words[words.index("to") + 1].rstrip(":"))
    assert first <= t <= last
    assert last - first < block
    assert (f"of lane {lane}:" in str(error.value)) == (len(lanes) > 1)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("block", [1, 2, 3, 4, 100])
def test_what_resuming_marks_does_not_count_as_damage(tmp_path, block):
    """Twice resumed within an episode, from one checkpoint; then on to the next one."""
    with small_blocks(block):
        replay = write(Replay.create(tmp_path, layout(2, 40)), MIXED)
        made, counts = record(replay), replay.counts
        for _ in range(2):
            replay = Replay.open(tmp_path, counts)
            replay.verify(made)
            before = (tmp_path / "truncated.bin").read_bytes()
            replay.mark_truncated()
            write(replay, [episode_rows(lane, [(5, "unfinished")]) for lane in (0, 1)])
        assert (tmp_path / "truncated.bin").read_bytes() == before  # the first time did mark
        assert np.fromfile(tmp_path / "truncated.bin", bool)[2 * (counts[0] - 1)]
        later = record(replay)
        assert later == record(Replay.open(tmp_path))
        Replay.open(tmp_path).verify(later)


def test_rows_that_resuming_writes_again_do_not_count(tmp_path):
    replay = write(Replay.create(tmp_path, layout(2, 40)), MIXED)
    made, whole = record(replay, rewritten=1), record(replay)
    resumed = Replay.open(tmp_path)
    resumed.counts -= 1
    write(resumed, [episode_rows(7, [(0, "unfinished")])] * 2)
    assert record(resumed) != whole
    Replay.open(tmp_path).verify(made)


def test_each_row_is_read_once_but_for_the_newest(tmp_path):
    with small_blocks(4):
        replay = Replay.create(tmp_path, layout(1, 100))
    rows, read = episode_rows(0, [(7, "truncated")] * 10), []
    column = replay.column
    with patch.object(replay, "column", lambda n, i, t: (read.extend(t), column(n, i, t))[1]):
        for first in range(0, 80, 8):
            write(replay, [rows[first : first + 8]])
            read.clear()
            replay.checksums()
            expected = [*range(max(first - 1, 0), first + 8)] * 6
            assert sorted(read) == sorted(expected)


def test_an_enlarged_replay_keeps_its_sums(tmp_path):
    replay = write(Replay.create(tmp_path, layout(2, 15)), MIXED)
    made = record(replay)
    larger = replay.enlarged(layout(2, 40, slack=3))
    assert record(larger) == made
    Replay.open(tmp_path).verify(made)


def test_another_size_of_blocks_is_the_records_own(tmp_path):
    with small_blocks(3):
        made = record(write(Replay.create(tmp_path, layout(2, 40)), MIXED))
    replay = Replay.open(tmp_path)
    replay.verify(made)
    assert record(replay) == made


def test_several_damaged_places_are_one_line(tmp_path):
    made = record(write(Replay.create(tmp_path, layout(1, 40)), MIXED[:1]))
    for name in ("obs", "reward", "step"):
        flip(tmp_path / f"{name}.bin", 50)
    with pytest.raises(MulvError, match=r"obs.bin is damaged .*and 2 more places.*restore the file") as error:
        Replay.open(tmp_path).verify(made)
    assert "\n" not in str(error.value)
