"""The replay of frames: each once, windows by index, bytes as they were, memory bounded."""

import json
import subprocess
import sys
from pathlib import Path

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mulv.core.errors import MulvError
from mulv.core.spec import BatchSpec, EnvSpec, Step
from mulv.data import Replay, ReplayLayout, columns

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
import json, re, sys
from pathlib import Path
import numpy as np
from mulv.data import Replay, columns
from tests.data.test_frame_replay import SPEC, layout, write

columns.RESIDENT = int(sys.argv[2])
replay = write(Replay.create(Path(sys.argv[1]), layout(2000)), 2000)
peak, rng = 0, np.random.default_rng(0)
for _ in range(40):
    replay.sample(SPEC, 4, rng)
    smaps = Path("/proc/self/smaps").read_text()
    resident = re.findall(r"obs.bin\\n.*?\\nRss: +(\\d+) kB", smaps, re.S)
    peak = max(peak, sum(1024 * int(kb) for kb in resident))
print(json.dumps({"peak": peak, "bytes": replay.layout.nbytes}))
"""


def peak_of(directory: Path, resident: int) -> dict[str, int]:
    command = [sys.executable, "-c", MEASURE, str(directory), str(resident)]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def test_frames_beyond_a_bound_are_let_go_of(tmp_path):
    bound = 6_000_000
    kept, let_go = peak_of(tmp_path / "kept", 1 << 30), peak_of(tmp_path / "let_go", bound)
    assert kept["peak"] > 0.9 * kept["bytes"]  # without a bound all of the file becomes resident
    assert let_go["peak"] <= bound


def test_what_was_let_go_of_is_not_lost(tmp_path, monkeypatch):
    monkeypatch.setattr(columns, "RESIDENT", 500_000)  # a few frames
    replay = write(Replay.create(tmp_path, layout(100)), 100)
    lane, t = replay.transitions(1)
    batch = replay.cut(BatchSpec(1, 1, 1, 1, 1.0), lane, t)
    np.testing.assert_array_equal(batch.x_h.obs[:, 0], np.stack([frame(int(i)) for i in t]))
