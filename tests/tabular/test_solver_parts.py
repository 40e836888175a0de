"""What the search is made of: frames against dense beliefs, the sawtooth against its formula."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mulv.tabular import belief as filtering
from mulv.tabular.solver.frames import find_frames
from mulv.tabular.solver.lower import Vectors
from mulv.tabular.solver.rows import GrowingRows
from mulv.tabular.solver.upper import Points
from mulv.tabular.zoo import make
from tests.tabular.planning import that_ends
from tests.tabular.support import random_pomdp

seeds = st.integers(0, 10**6)


@given(seeds, st.sampled_from([0.0, 0.5, 0.8]), st.sampled_from([0.0, 4.0, 50.0]))
@settings(max_examples=25)
def test_a_step_in_frames_is_the_step_of_the_whole_belief(seed, zeros, limit):
    pomdp = that_ends(random_pomdp(seed, states=4, first=False, zeros=zeros), 3)
    found, rng = find_frames(pomdp, limit), np.random.default_rng(seed)
    _, home, local = found.starts[0]
    for _ in range(4):
        frame = found.frames[home]
        whole = np.zeros(pomdp.states)
        whole[frame.states] = local
        following = frame.forward @ local
        np.testing.assert_allclose(frame.reward @ local, pomdp.reward @ whole, atol=1e-12)
        np.testing.assert_array_equal(frame.backward.toarray(), frame.forward.toarray().T)
        for a in range(pomdp.actions):
            expected = filtering.observation_probabilities(pomdp, whole, a)
            got = np.zeros(pomdp.observations)
            for slot in frame.outcomes(a):
                got[frame.observation[slot]] = following[frame.columns(slot)].sum()
            np.testing.assert_allclose(got, expected, atol=1e-12)
        slot = int(rng.choice([s for s in range(len(frame.action)) if following[frame.columns(s)].sum() > 0]))
        next_home = frame.groups[frame.group[slot]].frame
        joint = following[frame.columns(slot)]
        local = joint / joint.sum()
        after = filtering.update(pomdp, whole, int(frame.action[slot]), int(frame.observation[slot]))
        np.testing.assert_allclose(local, after[found.frames[next_home].states], atol=1e-12)
        home = next_home


def test_frames_are_what_an_agent_cannot_tell_apart():
    """RockSample: the sixteen states of the rocks in each of sixteen cells, and the end."""
    sizes = [len(frame.states) for frame in find_frames(make("rocksample-4-4")).frames]
    assert sorted(sizes) == [1] + [16] * 16


def test_without_zeros_there_is_one_frame():
    assert [len(f.states) for f in find_frames(random_pomdp(0, states=5)).frames] == [5]


def test_too_many_frames_are_given_up_for_one():
    pomdp = make("rocksample-4-4")
    assert [len(f.states) for f in find_frames(pomdp, limit=0.5).frames] == [pomdp.states]


def sawtooth(points, corners, b) -> float:
    """The formula, a point at a time."""
    best = b @ corners
    for p, v in points:
        ratio = min(b[s] / p[s] for s in range(len(p)) if p[s] > 0)
        best = min(best, b @ corners + (v - p @ corners) * ratio)
    return best


def sparse_belief(rng, states=4) -> np.ndarray:
    weights = rng.random(states) * (rng.random(states) < 0.7)
    weights[rng.integers(states)] += 0.1
    return weights / weights.sum()


@given(seeds, st.booleans())
@settings(max_examples=40)
def test_the_sawtooth_is_its_formula_and_holds_for_convex_functions(seed, tidied):
    rng = np.random.default_rng(seed)
    pieces = rng.normal(size=(5, 4))
    points = Points(np.full((2, 4), pieces.max() + 1.0))  # corners to begin with that are too high
    known = []
    for _ in range(20):
        p = sparse_belief(rng)
        v = float((pieces @ p).max())
        points.add(p, v + 0.5)  # which the next makes redundant
        points.add(p, v)
        known.append((p, v))
    corners = np.full(4, pieces.max() + 1.0)
    for p, v in known:
        if np.count_nonzero(p) == 1:
            corners[np.argmax(p)] = v
    if tidied:
        points.tidy()
        assert points.size <= 20
    for _ in range(10):
        b = sparse_belief(rng)
        assert points.bound(b) >= (pieces @ b).max() - 1e-9
        assert points.bound(b) == pytest.approx(sawtooth(known, corners, b), abs=1e-6)
        assert points.bound(0.3 * b) == pytest.approx(0.3 * points.bound(b), abs=1e-9)
    for p, v in known:
        assert points.bound(p) == pytest.approx(v, abs=1e-6)


def test_a_point_that_is_too_low_makes_a_bound_that_does_not_hold():
    points = Points(np.zeros((1, 2)))
    points.add(np.array([0.5, 0.5]), -1.0)  # of V = 0
    assert points.bound(np.array([0.5, 0.5])) == pytest.approx(-1.0)
    assert points.bound(np.array([0.75, 0.25])) == pytest.approx(-0.5)
    assert points.bound(np.array([1.0, 0.0])) == pytest.approx(0.0)


@given(seeds)
@settings(max_examples=30)
def test_vectors_keep_their_maximum_whatever_is_dropped(seed):
    rng = np.random.default_rng(seed)
    given_vectors = rng.integers(0, 4, size=(80, 3)) + np.arange(80)[:, None] * 0.05
    vectors = Vectors(given_vectors[:2])
    for action, vector in enumerate(given_vectors[2:]):
        vectors.add(vector, action)
        vectors.tidy()
    kept, actions = vectors.kept()
    assert len(kept) == len(actions) < 80
    beliefs = rng.dirichlet(np.ones(3), size=20)
    np.testing.assert_allclose((kept @ beliefs.T).max(axis=0), (given_vectors @ beliefs.T).max(axis=0))
    dominated = [np.all(kept >= each, axis=1).sum() > 1 for each in kept]
    assert not any(dominated)


@given(st.lists(st.sampled_from(["append", "read", "drop"]), max_size=60))
@settings(max_examples=60)
def test_a_reader_sees_every_row_that_is_there(events):
    table, seen, read, number = GrowingRows(1), set(), 0, 0
    for event in events:
        if event == "append":
            table.append(np.array([number]), number)
            number += 1
        elif event == "read":
            seen |= set(table.rows[table.unread(read) :, 0].tolist())
            read = table.total
            assert set(table.rows[:, 0].tolist()) <= seen
            assert table.unread(read) == table.size
        else:
            table.keep(np.arange(table.size) % 2 == 0)
    np.testing.assert_array_equal(table.rows[:, 0], table.beside)
