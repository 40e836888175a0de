"""The replay of frames: each once, windows by index, bytes as they were, memory bounded."""

import json
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mulv.core.errors import MulvError
from mulv.core.spec import BatchSpec, EnvSpec, Step
from mulv.data import Replay, ReplayLayout
from mulv.data.columns import FrameColumn

FRAME = (64, 64, 3)
SPEC = BatchSpec(batch_size=8, window=3, n_step=3, future=2, gamma=0.9)


def frame(number: int) -> np.ndarray:
    """A frame that tells its number, and what of it is where."""
    return (np.arange(np.prod(FRAME)).reshape(FRAME) * 7 + number * 31).astype(np.uint8)


def write(replay: Replay, rows: int, episode: int = 10) -> Replay:
    """Row t holds frame(t); an episode has `episode` decisions."""
    for t in range(rows):
        step = t % (episode + 1)
        replay.append(
            Step(
                lane=np.zeros(1, int),
                obs=frame(t)[None],
                action=np.full((1, 1), float(t), np.float32),
                reward=np.zeros(1, np.float32),
                terminated=np.zeros(1, bool),
                truncated=np.asarray([step == episode]),
                step=np.asarray([step]),
            )
        )
    return replay


def layout(capacity: int, slack: int = 0) -> ReplayLayout:
    return ReplayLayout.of(EnvSpec(FRAME, 1, obs_dtype="uint8"), lanes=1, capacity=capacity, slack=slack)


@pytest.fixture(scope="module")
def replay(tmp_path_factory):
    """Sixty rows written into room for forty."""
    return write(Replay.create(tmp_path_factory.mktemp("frames"), layout(40)), 60)


@given(st.data())
@settings(max_examples=15)
def test_windows_are_the_frames_of_their_rows(replay, data):
    lane, t = replay.transitions(SPEC.window)
    i = data.draw(st.integers(0, len(t) - 1))
    batch = replay.cut(SPEC, lane[i : i + 1], t[i : i + 1])
    begins = t[i] - t[i] % 11
    for back in range(SPEC.window):
        real = t[i] - back >= begins
        shown = batch.x_h.obs[0, SPEC.window - 1 - back]
        assert batch.x_h.mask[0, SPEC.window - 1 - back] == real
        np.testing.assert_array_equal(shown, frame(t[i] - back) if real else np.zeros(FRAME, np.uint8))
    for ahead in range(SPEC.future):
        if t[i] + 1 + ahead <= min(begins + 10, 59):
            np.testing.assert_array_equal(batch.future.obs[0, ahead], frame(t[i] + 1 + ahead))


def test_batches_carry_bytes(replay):
    batch = replay.sample(SPEC, 2, np.random.default_rng(0))
    assert [leaf.dtype for leaf in (batch.x_h.obs, batch.x_hn.obs, batch.future.obs)] == [np.uint8] * 3
    assert batch.x_h.obs.shape == (2, 8, 3, *FRAME)


def test_a_batch_is_a_copy(replay):
    before = replay.sample(SPEC, 1, np.random.default_rng(0))
    before.x_h.obs[:] = 0
    after = replay.sample(SPEC, 1, np.random.default_rng(0))
    assert after.x_h.obs.any()


def test_a_million_frames_take_their_own_bytes_and_little_else():
    million = layout(1_000_000)
    assert million.file_sizes["obs"] == 1_000_000 * 64 * 64 * 3
    assert 12.28e9 < million.nbytes < 12.35e9


def test_more_frames_than_the_disk_holds_is_one_line(small_disk):
    with pytest.raises(MulvError, match=r"needs 0.0\d GB .*--replay-capacity") as error:
        Replay.create(small_disk / "replay", layout(1000))
    assert "\n" not in str(error.value)
    assert not list((small_disk / "replay").glob("*.bin"))


@pytest.mark.parametrize(
    "obs", [frame(0)[None].astype(np.float32), frame(0)[None, :32], frame(0).transpose(2, 0, 1)[None]]
)
def test_frames_of_another_size_or_type_are_not_written(tmp_path, obs):
    replay = Replay.create(tmp_path, layout(4))
    first, no, zero = np.zeros(1, int), np.zeros(1, bool), np.zeros(1, np.float32)
    with pytest.raises(MulvError, match=r"this replay keeps \(64, 64, 3\) of uint8"):
        replay.append(Step(first, obs, zero[:, None], zero, no, no, first))
    assert len(replay) == 0


def test_a_reopened_replay_goes_on_from_earlier_counts(tmp_path):
    write(Replay.create(tmp_path, layout(40, slack=20)), 60).flush()
    then = Replay.open(tmp_path, np.array([50]))
    whole = write(Replay.create(tmp_path / "whole", layout(40, slack=20)), 50)
    expected, got = (r.cut(SPEC, *r.transitions(SPEC.window)) for r in (whole, then))
    jax.tree.map(np.testing.assert_array_equal, got, expected)


# ------------------------------------------------------------------------------------------ bounded memory

MEASURE = """
import json, sys
from pathlib import Path
import numpy as np
from mulv.data import Replay
from tests.data.test_frame_replay import SPEC, layout, write

def file_pages():
    return 4096 * int(Path("/proc/self/statm").read_text().split()[2])

replay, rng = write(Replay.create(Path(sys.argv[1]), layout(2000)), 2000), np.random.default_rng(0)
replay.sample(SPEC, 1, rng)
before = file_pages()
for _ in range(40):
    replay.sample(SPEC, 4, rng)
sampled = file_pages() - before
mapped = np.memmap(replay.directory / "obs.bin", np.uint8)
mapped.sum()
print(json.dumps({"sampled": sampled, "mapped": file_pages() - before, "frames": mapped.size}))
"""


def test_sampled_frames_do_not_count_as_memory_of_the_process(tmp_path):
    command = [sys.executable, "-c", MEASURE, str(tmp_path / "replay")]
    found = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    assert found["mapped"] > 0.9 * found["frames"]  # as they would where the file was mapped
    assert found["sampled"] < 0.1 * found["frames"]


@given(st.lists(st.integers(0, 19), min_size=1, max_size=12), st.integers(1, 3))
@settings(max_examples=25)
def test_frames_are_read_and_written_wherever_they_lie(rows, width):
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "frames.bin"
        np.stack([frame(i) for i in range(20)]).tofile(path)
        column = FrameColumn(path, "uint8", (20, *FRAME), "r+")
        at = np.resize(rows, (len(rows), width))
        np.testing.assert_array_equal(column.take(at), np.stack([frame(i) for i in range(20)])[at])
        distinct = np.unique(rows)
        column.put(distinct, np.stack([frame(100 + i) for i in distinct]))
        expected = [frame(100 + i if i in distinct else i) for i in range(20)]
        np.testing.assert_array_equal(np.fromfile(path, np.uint8).reshape(20, *FRAME), np.stack(expected))


def test_frames_that_are_cut_short_are_named(tmp_path):
    path = tmp_path / "frames.bin"
    frame(0).tofile(path)
    with pytest.raises(MulvError, match="damaged"):
        FrameColumn(path, "uint8", (2, *FRAME), "r").take(np.array([0, 1]))


def test_vectors_stand_for_the_frames_of_their_rows(replay):
    """A batch of vectors is the batch of frames with every frame's vector in its place."""
    number = np.zeros((replay.layout.ring, 1), np.float32)
    for t in range(20, 60):
        number[t % replay.layout.ring] = t
    spec = replace(SPEC, frames=5)
    plain = replay.sample(SPEC, 2, np.random.default_rng(0))
    batch = replay.sample(spec, 2, np.random.default_rng(0), number)

    def check(vectors, frames, mask):
        flat = (vectors.reshape(-1), frames.reshape(-1, *FRAME), mask.reshape(-1))
        for vector, shown, real in zip(*flat, strict=True):
            np.testing.assert_array_equal(shown, frame(int(vector)) if real else 0)
            assert (vector == 0) == (not real)

    for name in ("x_h", "x_hn", "future"):
        check(getattr(batch, name).obs, getattr(plain, name).obs, getattr(plain, name).mask)
    assert batch.frames.shape == (2, 5, *FRAME)
    np.testing.assert_array_equal(batch.frames, plain.x_h.obs[:, :5, -1])
    assert plain.frames is None
