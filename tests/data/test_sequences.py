"""Sequences of the replay against lists of rows: every number is unique, so a wrong index shows."""

import tempfile
from pathlib import Path

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from mulv.core.errors import MulvError
from mulv.core.spec import EnvSpec, SequenceSpec
from mulv.core.types import SequenceBatch
from mulv.data import Replay, ReplayLayout
from mulv.data.sequences import starts
from tests.data import test_frame_replay
from tests.data.test_replay import ACT, MIXED, Row, capacities, episode_rows, histories, layout, slacks, write

lengths = st.integers(1, 9)


def naive_starts(lanes: list[list[Row]], capacity: int, length: int) -> list[tuple[int, int]]:
    """Where all rows of a sequence are written and none was dropped."""
    return [
        (lane, t)
        for lane, rows in enumerate(lanes)
        for t in range(len(rows))
        if t >= len(rows) - capacity and t + length <= len(rows)
    ]


def naive_cut(rows: list[Row], t: int, length: int) -> SequenceBatch:
    """The rows themselves; an episode's first has neither action nor reward, for nothing was done yet."""
    obs, action, reward, terminated, first = [], [], [], [], []
    for row in rows[t : t + length]:
        begins = row.step == 0
        obs.append(row.obs)
        action.append(np.zeros(ACT) if begins else row.action)
        reward.append(0.0 if begins else row.reward)
        terminated.append(row.terminated)
        first.append(begins)
    return SequenceBatch(*map(np.array, (obs, action, reward, terminated, first)))


def all_starts(replay: Replay, length: int) -> list[tuple[int, int]]:
    low, size = starts(replay.counts, replay.layout.capacity, length)
    return [(i, t) for i, (lo, n) in enumerate(zip(low, size, strict=True)) for t in range(lo, lo + n)]


@given(histories, capacities, slacks, lengths)
@settings(max_examples=60)
def test_starts_are_those_of_the_kept_rows(lanes, capacity, slack, length):
    with tempfile.TemporaryDirectory() as directory:
        replay = write(Replay.create(Path(directory), layout(len(lanes), capacity, slack)), lanes)
    assert all_starts(replay, length) == naive_starts(lanes, capacity, length)


@given(histories, capacities, slacks, lengths)
@settings(max_examples=60)
def test_every_sequence_equals_the_list_of_rows(lanes, capacity, slack, length):
    with tempfile.TemporaryDirectory() as directory:
        replay = write(Replay.create(Path(directory), layout(len(lanes), capacity, slack)), lanes)
        pairs = naive_starts(lanes, capacity, length)
        lane, t = np.array(pairs, int).reshape(-1, 2).T
        batch = replay.cut_sequences(length, lane, t)
    for i, (at_lane, at_t) in enumerate(pairs):
        one = jax.tree.map(lambda leaf, i=i: leaf[i], batch)
        jax.tree.map(np.testing.assert_array_equal, one, naive_cut(lanes[at_lane], at_t, length))


@given(histories, capacities, slacks, lengths, st.integers(0, 3))
@settings(max_examples=60)
def test_samples_are_sequences_of_the_kept_rows(lanes, capacity, slack, length, seed):
    spec = SequenceSpec(batch_size=3, length=length)
    with tempfile.TemporaryDirectory() as directory:
        replay = write(Replay.create(Path(directory), layout(len(lanes), capacity, slack)), lanes)
        pairs = naive_starts(lanes, capacity, length)
        if not pairs:
            with pytest.raises(MulvError, match=f"a sequence takes {length}"):
                replay.sample_sequences(spec, 2, np.random.default_rng(seed))
            return
        batch = replay.sample_sequences(spec, 2, np.random.default_rng(seed))
    by_number = {lanes[lane][t].obs[0]: (lane, t) for lane, t in pairs}
    for i in np.ndindex(2, 3):
        one = jax.tree.map(lambda leaf, i=i: leaf[i], batch)
        lane, t = by_number[one.obs[0, 0]]
        jax.tree.map(np.testing.assert_array_equal, one, naive_cut(lanes[lane], t, length))


@pytest.fixture
def mixed(tmp_path):
    """Two lanes that came round, unequal episodes."""
    return write(Replay.create(tmp_path, layout(2, 11, slack=2)), MIXED)


def test_sequences_are_uniform_over_their_starts(mixed):
    batch = mixed.sample_sequences(SequenceSpec(32, 4), 500, np.random.default_rng(0))
    numbers, frequency = np.unique(batch.obs[:, :, 0, 0], return_counts=True)
    expected = naive_starts(MIXED, 11, 4)
    assert sorted(numbers) == sorted(MIXED[lane][t].obs[0] for lane, t in expected)
    assert chisquare(frequency).pvalue > 1e-3


def test_a_sequence_crosses_both_kinds_of_end(tmp_path):
    rows = episode_rows(0, [(2, "terminated"), (1, "truncated"), (1, "unfinished")])
    replay = write(Replay.create(tmp_path, layout(1, 7)), [rows])
    batch = replay.sample_sequences(SequenceSpec(1, 7, burn_in=2), 1, np.random.default_rng(0))
    one = jax.tree.map(lambda leaf: leaf[0, 0], batch)
    np.testing.assert_array_equal(one.first, [1, 0, 0, 1, 0, 1, 0])
    np.testing.assert_array_equal(one.terminated, [0, 0, 1, 0, 0, 0, 0])
    np.testing.assert_array_equal(one.reward, [0, 1.0, 1.5, 0, 2.5, 0, 3.5])
    np.testing.assert_array_equal(one.action[:, 0], [0, 2, 3, 0, 5, 0, 7])
    np.testing.assert_array_equal(one.obs[:, 0], [1, 2, 3, 4, 5, 6, 7])


def test_what_a_first_row_holds_beside_its_observation_is_not_passed_on(tmp_path):
    """Data from elsewhere may have anything there."""
    rows = [row._replace(action=np.full(ACT, 9.0), reward=9.0) for row in MIXED[0]]
    replay = write(Replay.create(tmp_path, layout(1, 20)), [rows])
    batch = replay.sample_sequences(SequenceSpec(4, len(rows)), 1, np.random.default_rng(0))
    assert batch.first.sum(axis=-1).min() == 4
    np.testing.assert_array_equal(batch.reward, np.where(batch.first, 0, 9))
    np.testing.assert_array_equal(batch.action, np.where(batch.first[..., None], 0, 9.0 * np.ones(ACT)))


def test_same_generator_same_sequences(mixed):
    spec = SequenceSpec(8, 3)
    first, second = (mixed.sample_sequences(spec, 2, np.random.default_rng(7)) for _ in range(2))
    jax.tree.map(np.testing.assert_array_equal, first, second)


def test_vectors_stand_for_observations(mixed):
    spec, places = SequenceSpec(8, 3), np.arange(26, dtype=np.float32)[:, None]
    plain = mixed.sample_sequences(spec, 2, np.random.default_rng(0))
    batch = mixed.sample_sequences(spec, 2, np.random.default_rng(0), places)
    np.testing.assert_array_equal(mixed.obs_at(batch.obs[..., 0].astype(int)), plain.obs)
    np.testing.assert_array_equal(batch.reward, plain.reward)


def test_sequences_of_frames_are_bytes(tmp_path):
    spec = EnvSpec(test_frame_replay.FRAME, 1, obs_dtype="uint8")
    replay = Replay.create(tmp_path, ReplayLayout.of(spec, lanes=1, capacity=20, slack=0))
    test_frame_replay.write(replay, 30)
    batch = replay.sample_sequences(SequenceSpec(2, 5), 1, np.random.default_rng(0))
    assert (batch.obs.dtype, batch.obs.shape) == (np.uint8, (1, 2, 5, 64, 64, 3))
    for i in range(2):
        t = next(t for t in range(10, 30) if (test_frame_replay.frame(t) == batch.obs[0, i, 0]).all())
        expected = [test_frame_replay.frame(t + ahead) for ahead in range(5)]
        np.testing.assert_array_equal(batch.obs[0, i], np.stack(expected))


@pytest.mark.parametrize("burn_in", [-1, 5, 6])
def test_a_burn_in_must_leave_a_step_to_learn_from(burn_in):
    with pytest.raises(MulvError, match="burn-in"):
        SequenceSpec(1, 5, burn_in)
