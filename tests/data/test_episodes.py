"""Recorded episodes: what is read from one replay and written into another gives the same windows."""

import tempfile
from dataclasses import replace
from pathlib import Path

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mulv.core.errors import MulvError
from mulv.core.spec import BatchSpec, EnvSpec
from mulv.core.types import Batch
from mulv.data import Replay, ReplayLayout
from mulv.data.episodes import Dataset, Episode, Survey, fill, newest, read_episodes, survey
from tests.data.test_replay import ACT, MIXED, OBS, episode_rows, histories, layout, write

# Actions of the replay's tests are unique numbers, so the bounds of continuous ones do not hold of them.
SPEC = EnvSpec((OBS,), ACT, discrete=True)
CUT = BatchSpec(batch_size=4, window=3, n_step=2, future=2, gamma=0.9)


def dataset_of(replay: Replay) -> Dataset:
    return Dataset("recorded", lambda: read_episodes(replay))


def copied(replay: Replay, directory: Path, lanes: int) -> Replay:
    data = dataset_of(replay)
    found = survey(data, SPEC)
    copy = Replay.create(directory, ReplayLayout((OBS,), "float32", ACT, lanes, found.rows(lanes), 0))
    fill(copy, data, found)
    return copy


def cuts(replay: Replay) -> dict[float, list[np.ndarray]]:
    """Every transition's batch, by the number that its observation is; how much data there was aside."""
    batch: Batch = replay.cut(CUT, *replay.transitions(CUT.window))
    batch = batch._replace(data_size=np.zeros_like(batch.data_size))
    numbers = batch.x_h.obs[:, -1, 0]
    assert len(set(numbers)) == len(numbers)
    return {n: [leaf[i] for leaf in jax.tree.leaves(batch)] for i, n in enumerate(numbers.tolist())}


def assert_same_cuts(one: Replay, other: Replay) -> None:
    left, right = cuts(one), cuts(other)
    assert left.keys() == right.keys()
    for number, leaves in left.items():
        for a, b in zip(leaves, right[number], strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-6)  # a sum of rewards may differ in its last bit


@given(histories, st.integers(1, 4))
@settings(max_examples=25)
def test_a_copy_gives_the_same_windows_whatever_its_lanes(lanes, into):
    with tempfile.TemporaryDirectory() as directory:
        replay = write(Replay.create(Path(directory) / "a", layout(len(lanes), 60)), lanes)
        if not replay.transitions()[0].size:
            return
        copy = copied(replay, Path(directory) / "b", into)
        assert_same_cuts(replay, copy)
        assert copy.counts.max() == copy.layout.capacity  # just the room, in the fullest lane


def test_a_replay_that_came_round_gives_the_episodes_whose_beginning_it_kept(tmp_path):
    """Capacity 11 drops the first episode of lane 0 in its middle, and keeps all of those after it."""
    replay = write(Replay.create(tmp_path, layout(2, 11, slack=2)), MIXED)
    first = [episode.obs[0, 0] for episode in read_episodes(replay)]
    kept = [
        rows[t].obs[0]
        for rows in MIXED
        for t in range(max(len(rows) - 11, 0), len(rows) - 1)
        if rows[t].step == 0 and rows[t + 1].step == 1
    ]
    assert first == kept
    assert 1.0 not in first


def test_an_unfinished_episode_counts_as_cut_off_and_a_lone_reset_as_none(tmp_path):
    rows = episode_rows(0, [(2, "terminated"), (3, "unfinished"), (1, "truncated"), (0, "unfinished")])
    replay = write(Replay.create(tmp_path, layout(1, 30)), [rows])
    found = [(len(e.rewards), e.terminated, e.truncated) for e in read_episodes(replay)]
    assert found == [(2, True, False), (3, False, True), (1, False, True)]


def test_rows_written_later_are_left_out(tmp_path):
    rows = episode_rows(0, [(2, "terminated"), (3, "truncated")])
    replay = write(Replay.create(tmp_path, layout(1, 30)), [rows])
    lengths = [[len(e.rewards) for e in read_episodes(replay, [until])] for until in (0, 1, 2, 3, 4, 5, 7)]
    assert lengths == [[], [], [1], [2], [2], [2, 1], [2, 3]]


def episode(steps: int = 4, **changes) -> Episode:
    rng = np.random.default_rng(steps)
    good = Episode(
        rng.normal(size=(steps + 1, OBS)),
        rng.uniform(-1, 1, (steps, ACT)),
        rng.normal(size=steps),
        True,
        False,
    )
    return good._replace(**changes)


def spoilt(array: np.ndarray, at: int, value: float) -> np.ndarray:
    array = array.copy()
    array.reshape(len(array), -1)[at, 0] = value
    return array


GOOD = episode()


@pytest.mark.parametrize(
    ("bad", "line"),
    [
        ({"obs": GOOD.obs[:-1]}, r"observations of shape \(4, 2\), where 4 steps of the task have \(5, 2\)"),
        ({"obs": GOOD.obs[:, :1]}, r"observations of shape \(5, 1\)"),
        ({"actions": GOOD.actions[:, :2]}, r"actions of shape \(4, 2\), where .* \(4, 3\)"),
        ({"actions": GOOD.actions[:, 0]}, r"actions of shape \(4,\)"),
        ({"rewards": GOOD.rewards[:, None]}, r"rewards of shape \(4, 1\)"),
        ({"obs": spoilt(GOOD.obs, 3, np.nan)}, "observations that are not finite at step 3"),
        ({"rewards": spoilt(GOOD.rewards, 2, np.inf)}, "rewards that are not finite at step 2"),
        ({"actions": spoilt(GOOD.actions, 1, np.nan)}, "actions that are not finite at step 1"),
        ({"actions": spoilt(GOOD.actions, 1, 1.5)}, r"an action of 1.5, outside \[-1, 1\]"),
        ({"obs": GOOD.obs[:1], "actions": GOOD.actions[:0], "rewards": GOOD.rewards[:0]}, "has no step"),
    ],
)
def test_bad_episodes_are_named(bad, line):
    data = Dataset("recorded", lambda: iter([GOOD, GOOD, episode(**bad)]))
    with pytest.raises(MulvError, match=f"recorded: episode 2 .*{line}") as error:
        survey(data, EnvSpec((OBS,), ACT))
    assert "\n" not in str(error.value)


def test_no_episode_is_nothing_to_learn_from():
    with pytest.raises(MulvError, match="nothing to learn from"):
        survey(Dataset("recorded", lambda: iter([])), SPEC)


def test_one_step_episodes_are_good():
    found = survey(Dataset("recorded", lambda: iter([episode(1)] * 3)), EnvSpec((OBS,), ACT))
    assert (found.lengths, found.steps, found.rows(1), found.rows(2)) == ((1, 1, 1), 3, 6, 4)


@pytest.mark.parametrize(
    "change",
    [
        {"obs": spoilt(GOOD.obs, 4, 0.5)},
        {"actions": spoilt(GOOD.actions, 0, 0.5)},
        {"rewards": spoilt(GOOD.rewards, 1, 0.5)},
        {"terminated": False},
        {"truncated": True},
    ],
)
def test_the_checksum_is_of_everything(change):
    spec = EnvSpec((OBS,), ACT)
    same, other = (
        survey(Dataset("recorded", lambda e=e: iter([e])), spec).sha256
        for e in (episode(), episode(**change))
    )
    assert same == survey(Dataset("elsewhere", lambda: iter([GOOD])), spec).sha256
    assert same != other


def test_a_survey_survives_json():
    found = survey(Dataset("recorded", lambda: iter([GOOD, episode(2)])), EnvSpec((OBS,), ACT))
    assert Survey.from_json(found.to_json()) == found
    assert replace(found, source="x") != found


@given(st.lists(st.integers(1, 9), max_size=8), st.integers(1, 40))
def test_the_newest_are_as_many_of_the_last_as_fit(lengths, steps):
    kept = [len(e.rewards) for e in newest([episode(n) for n in lengths], steps)]
    assert kept == lengths[len(lengths) - len(kept) :]
    assert sum(kept) <= steps
    assert len(kept) == len(lengths) or sum(lengths[len(lengths) - len(kept) - 1 :]) > steps
