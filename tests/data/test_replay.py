"""The replay against lists of episodes: every number is unique, so a wrong index shows as a wrong value."""

import tempfile
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from mulv.core.errors import MulvError
from mulv.core.spec import BatchSpec, EnvSpec, Step
from mulv.core.types import Batch, Future, Window
from mulv.data import Replay, ReplayLayout

OBS, ACT = 2, 3


class Row(NamedTuple):
    episode: int
    step: int
    obs: np.ndarray
    action: np.ndarray
    reward: float
    terminated: bool
    truncated: bool


def episode_rows(lane: int, lengths_and_ends: list[tuple[int, str]]) -> list[Row]:
    """The rows of one lane; an end is `terminated`, `truncated` or `unfinished`."""
    rows: list[Row] = []
    for episode, (length, end) in enumerate(lengths_and_ends):
        for step in range(length + 1):
            number, last = 1000 * lane + len(rows) + 1, step == length
            acted = step > 0
            rows.append(
                Row(
                    episode,
                    step,
                    np.array([number, -number], np.float32),
                    np.array([number, 2 * number, 3 * number], np.float32) * acted,
                    0.5 * number * acted,
                    last and end == "terminated",
                    last and end == "truncated",
                )
            )
    return rows


def layout(lanes: int, capacity: int, slack: int = 0) -> ReplayLayout:
    return ReplayLayout((OBS,), "float32", ACT, lanes, capacity, slack)


def as_step(rows: dict[int, Row]) -> Step:
    column = {name: np.array([getattr(row, name) for row in rows.values()]) for name in Row._fields[1:]}
    return Step(lane=np.array(list(rows)), **column)


def write(replay: Replay, lanes: list[list[Row]]) -> Replay:
    for together in zip_longest(*lanes):
        replay.append(as_step({i: row for i, row in enumerate(together) if row is not None}))
    return replay


def naive_transitions(lanes: list[list[Row]], capacity: int, window: int) -> set[tuple[int, int]]:
    """Where the next row continues the episode and the window touches no row that was dropped."""
    found = set()
    for lane, rows in enumerate(lanes):
        dropped = max(len(rows) - capacity, 0)
        for t in range(len(rows) - 1):
            whole = dropped == 0 or t - (window - 1) >= dropped
            if whole and rows[t + 1].episode == rows[t].episode:
                found.add((lane, t))
    return found


def naive_window(rows: list[Row], t: int, length: int) -> Window:
    episode = [row for row in rows[: t + 1] if row.episode == rows[t].episode][-length:]
    missing = length - len(episode)
    obs = [np.zeros(OBS)] * missing + [row.obs for row in episode]
    actions = [np.zeros(ACT)] * missing + [row.action for row in episode[1:]]
    mask = [False] * missing + [True] * len(episode)
    rewards = np.array([0.0] * missing + [row.reward for row in episode])
    between = np.array(actions[: length - 1]).reshape(length - 1, ACT)
    return Window(np.array(obs), between, np.array(mask), rewards)


def naive_cut(lanes: list[list[Row]], lane: int, t: int, capacity: int, spec: BatchSpec) -> Batch:
    rows, size = lanes[lane], sum(min(len(rows), capacity) for rows in lanes)
    later = [row for row in rows[t + 1 :] if row.episode == rows[t].episode]
    taken = later[: spec.n_step]
    reward = sum(spec.gamma**i * row.reward for i, row in enumerate(taken))
    discount = 0.0 if taken[-1].terminated else spec.gamma ** len(taken)
    seen = later[: spec.future]
    missing = spec.future - len(seen)
    future = Future(
        actions=np.array([row.action for row in seen] + [np.zeros(ACT)] * missing),
        rewards=np.array([row.reward for row in seen] + [0.0] * missing),
        obs=np.array([row.obs for row in seen] + [np.zeros(OBS)] * missing),
        mask=np.array([True] * len(seen) + [False] * missing),
        terminated=np.array([row.terminated for row in seen] + [False] * missing),
    )
    x_h, x_hn = (naive_window(rows, end, spec.window) for end in (t, t + len(taken)))
    return Batch(x_h, later[0].action, np.array(reward), np.array(discount), x_hn, future, np.array(size))


def assert_same_batch(got: Batch, expected: Batch) -> None:
    jax.tree.map(lambda g, e: np.testing.assert_allclose(g, e, rtol=1e-6), got, expected)


finished = st.tuples(st.integers(1, 7), st.sampled_from(["terminated", "truncated"]))
unfinished = st.tuples(st.integers(0, 7), st.just("unfinished"))
lane_episodes = st.tuples(st.lists(finished, max_size=6), unfinished).map(lambda pair: [*pair[0], pair[1]])
histories = st.lists(lane_episodes, min_size=1, max_size=3).map(
    lambda lanes: [episode_rows(i, episodes) for i, episodes in enumerate(lanes)]
)
capacities = st.integers(3, 40)  # from always wrapping to never
slacks = st.sampled_from([0, 1, 7])
sizes = st.integers(1, 5)
specs = st.builds(BatchSpec, st.just(4), sizes, sizes, sizes, st.sampled_from([0.9, 1.0]))


@given(histories, capacities, slacks, sizes)
@settings(max_examples=60)
def test_transitions_are_those_of_the_kept_episodes(lanes, capacity, slack, window):
    with tempfile.TemporaryDirectory() as directory:
        replay = write(Replay.create(Path(directory), layout(len(lanes), capacity, slack)), lanes)
        lane, t = replay.transitions(window)
    pairs = list(zip(lane.tolist(), t.tolist(), strict=True))
    assert len(set(pairs)) == len(pairs)
    assert set(pairs) == naive_transitions(lanes, capacity, window)


@given(histories, capacities, slacks, specs)
@settings(max_examples=60)
def test_every_cut_equals_the_list_of_episodes(lanes, capacity, slack, spec):
    with tempfile.TemporaryDirectory() as directory:
        replay = write(Replay.create(Path(directory), layout(len(lanes), capacity, slack)), lanes)
        lane, t = replay.transitions(spec.window)
        batch = replay.cut(spec, lane, t)
    for i, (at_lane, at_t) in enumerate(zip(lane, t, strict=True)):
        one = jax.tree.map(lambda leaf, i=i: leaf[i], batch)
        assert_same_batch(one, naive_cut(lanes, at_lane, at_t, capacity, spec))


@given(histories, st.integers(3, 20), st.integers(1, 7), specs)
@settings(max_examples=60)
def test_opening_at_earlier_counts_gives_the_replay_of_that_time(lanes, capacity, slack, spec):
    """A checkpoint's rows survive as many later rows as the slack."""
    earlier = [rows[: max(len(rows) - slack, 1)] for rows in lanes]
    counts = np.array([len(rows) for rows in earlier])
    with tempfile.TemporaryDirectory() as directory:
        write(Replay.create(Path(directory), layout(len(lanes), capacity, slack)), lanes).flush()
        replay = Replay.open(Path(directory), counts)
        lane, t = replay.transitions(spec.window)
        batch = replay.cut(spec, lane, t)
    assert set(zip(lane.tolist(), t.tolist(), strict=True)) == naive_transitions(
        earlier, capacity, spec.window
    )
    for i, (at_lane, at_t) in enumerate(zip(lane, t, strict=True)):
        one = jax.tree.map(lambda leaf, i=i: leaf[i], batch)
        assert_same_batch(one, naive_cut(earlier, at_lane, at_t, capacity, spec))


MIXED = [
    episode_rows(0, [(3, "terminated"), (1, "truncated"), (5, "truncated"), (2, "unfinished")]),
    episode_rows(1, [(1, "terminated"), (1, "terminated"), (6, "terminated"), (0, "unfinished")]),
]
SPEC = BatchSpec(batch_size=32, window=2, n_step=3, future=2, gamma=0.9)


@pytest.fixture
def mixed(tmp_path):
    """Two lanes that came round, unequal episodes."""
    return write(Replay.create(tmp_path, layout(2, 11, slack=2)), MIXED)


def test_sample_is_uniform_over_the_eligible_transitions(mixed):
    batch = mixed.sample(SPEC, 500, np.random.default_rng(0))
    numbers, frequency = np.unique(batch.x_h.obs[:, :, -1, 0], return_counts=True)
    eligible = naive_transitions(MIXED, 11, SPEC.window)
    assert sorted(numbers) == sorted(MIXED[lane][t].obs[0] for lane, t in eligible)
    assert chisquare(frequency).pvalue > 1e-3


def test_samples_are_cuts_of_the_rows_they_name(mixed):
    batch = mixed.sample(SPEC, 2, np.random.default_rng(1))
    by_number = {row.obs[0]: (lane, t) for lane in (0, 1) for t, row in enumerate(MIXED[lane])}
    for i in np.ndindex(2, SPEC.batch_size):
        one = jax.tree.map(lambda leaf, i=i: leaf[i], batch)
        assert_same_batch(one, naive_cut(MIXED, *by_number[one.x_h.obs[-1, 0]], 11, SPEC))


def test_samples_lead_with_batches_and_batch_size(mixed):
    leaves = jax.tree.leaves(mixed.sample(SPEC, 3, np.random.default_rng(0)))
    assert {leaf.shape[:2] for leaf in leaves} == {(3, SPEC.batch_size)}


def test_same_generator_same_sample(mixed):
    first, second = (mixed.sample(SPEC, 2, np.random.default_rng(7)) for _ in range(2))
    jax.tree.map(np.testing.assert_array_equal, first, second)


def test_an_empty_replay_has_nothing_to_sample(tmp_path):
    replay = Replay.create(tmp_path, layout(2, 10))
    with pytest.raises(MulvError, match="no transition"):
        replay.sample(SPEC, 1, np.random.default_rng(0))


def test_resets_alone_are_nothing_to_sample(tmp_path):
    replay = write(Replay.create(tmp_path, layout(1, 10)), [episode_rows(0, [(0, "unfinished")] * 3)])
    with pytest.raises(MulvError, match="no transition"):
        replay.sample(SPEC, 1, np.random.default_rng(0))


def test_one_step_episodes_give_each_its_only_transition(tmp_path):
    rows = episode_rows(0, [(1, "terminated")] * 4)
    replay = write(Replay.create(tmp_path, layout(1, 8)), [rows])
    batch = replay.sample(SPEC, 4, np.random.default_rng(0))
    assert set(batch.x_h.obs[:, :, -1, 0].ravel()) == {1.0, 3.0, 5.0, 7.0}
    assert not batch.discount.any()
    np.testing.assert_array_equal(batch.x_h.mask, np.broadcast_to([False, True], batch.x_h.mask.shape))


def test_a_lone_transition_among_thousands_of_resets_is_found(tmp_path):
    rows = episode_rows(0, [(0, "unfinished")] * 4000 + [(1, "terminated")] + [(0, "unfinished")] * 4000)
    replay = write(Replay.create(tmp_path, layout(1, 9000)), [rows])
    batch = replay.sample(SPEC, 1, np.random.default_rng(0))
    assert set(batch.x_h.obs[0, :, -1, 0]) == {4001.0}


def test_length_counts_the_kept_rows(mixed):
    assert len(mixed) == sum(min(len(rows), 11) for rows in MIXED)


def test_a_reopened_replay_is_equal(mixed):
    mixed.flush()
    reopened = Replay.open(mixed.directory)
    assert reopened.layout == mixed.layout
    np.testing.assert_array_equal(reopened.counts, mixed.counts)
    expected, got = (replay.cut(SPEC, *replay.transitions(SPEC.window)) for replay in (mixed, reopened))
    jax.tree.map(np.testing.assert_array_equal, got, expected)


def test_opening_what_is_not_a_replay_names_the_directory(tmp_path):
    with pytest.raises(MulvError, match=tmp_path.name):
        Replay.open(tmp_path)


def test_enlarging_keeps_every_row(tmp_path):
    replay = write(Replay.create(tmp_path, layout(2, 15)), MIXED)
    larger = replay.enlarged(layout(2, 40, slack=3))
    assert larger.layout == layout(2, 40, slack=3)
    expected, got = (r.cut(SPEC, *r.transitions(SPEC.window)) for r in (replay, larger))
    jax.tree.map(np.testing.assert_array_equal, got, expected)


def test_enlarged_replay_has_room_for_more(tmp_path):
    replay = write(Replay.create(tmp_path, layout(2, 15)), MIXED).enlarged(layout(2, 40))
    write(replay, MIXED)
    assert len(replay) == 2 * sum(map(len, MIXED))


def test_enlarging_to_another_environment_is_refused(tmp_path):
    replay = Replay.create(tmp_path, layout(2, 15))
    with pytest.raises(MulvError, match="another environment"):
        replay.enlarged(ReplayLayout((OBS + 1,), "float32", ACT, 2, 40, 0))


def test_a_replay_larger_than_the_disk_writes_nothing(tmp_path):
    with pytest.raises(MulvError, match="GB free"):
        Replay.create(tmp_path, layout(2, 10**13))
    assert list(tmp_path.iterdir()) == []


def test_mark_truncated_marks_only_unfinished_episodes(tmp_path):
    ends = ["terminated", "truncated", "unfinished"]
    lanes = [episode_rows(i, [(2, "terminated"), (3, end)]) for i, end in enumerate(ends)]
    lanes.append(episode_rows(3, [(2, "terminated"), (0, "unfinished")]))  # a reset only: nothing to cut off
    replay = write(Replay.create(tmp_path, layout(4, 10)), lanes)
    before = np.fromfile(tmp_path / "truncated.bin", bool)
    replay.mark_truncated()
    replay.flush()
    changed = np.flatnonzero(np.fromfile(tmp_path / "truncated.bin", bool) != before)
    np.testing.assert_array_equal(changed, [6 * 4 + 2])  # the newest row of lane 2, lanes side by side


def test_each_observation_is_stored_once(tmp_path):
    replay = write(Replay.create(tmp_path, layout(2, 15)), MIXED)
    replay.flush()
    assert sum(file.stat().st_size for file in tmp_path.glob("*.bin")) == replay.layout.nbytes
    stored = np.fromfile(tmp_path / "obs.bin", np.float32).reshape(-1, OBS)[:, 0]
    numbers = sorted(row.obs[0] for rows in MIXED for row in rows)
    assert sorted(stored[stored != 0]) == numbers


def test_layout_shares_the_capacity_among_lanes():
    shared = ReplayLayout.of(EnvSpec((OBS,), ACT), lanes=3, capacity=100, slack=10)
    assert (shared.capacity, shared.slack, shared.ring) == (34, 4, 38)
