"""The zoo against what is published of it: counts, rows of the original files, rewards, values."""

import itertools

import numpy as np
import pytest

from mulv.core.errors import MulvError
from mulv.envs.pomdp_ids import IDS
from mulv.tabular import belief, zoo
from mulv.tabular.pomdp import POMDP
from mulv.tabular.zoo.hallway import HALLWAY2, Map
from mulv.tabular.zoo.rocksample import Field, rocksample

# states, actions, observations, terminal states
COUNTS = {
    "tiger": (2, 3, 2, 0),
    "hallway": (60, 5, 21, 0),
    "hallway2": (92, 5, 17, 0),
    "tag": (870, 5, 30, 29),
    "rocksample-4-4": (257, 9, 2, 1),
    "rocksample-7-8": (12_545, 13, 2, 1),
    "rocksample-5-3": (201, 8, 2, 1),
    "light-dark": (22, 3, 21, 1),
    "lock": (31, 4, 25, 1),
    "block-lock": (31, 4, 124, 1),
    "random-decodable": (8, 2, 4, 0),
    "t-maze": (21, 3, 12, 1),
}


def row(matrix, i: int) -> dict[int, float]:
    first, last = matrix.indptr[i : i + 2]
    return dict(zip(matrix.indices[first:last].tolist(), matrix.data[first:last].tolist(), strict=True))


def value_of_mdp(pomdp: POMDP, sweeps: int = 400) -> np.ndarray:
    """V* if the state were seen: an upper bound on the POMDP's."""
    value = np.zeros(pomdp.states)
    for _ in range(sweeps):
        value = np.max([r + pomdp.discount * (t @ value) for r, t in zip(pomdp.reward, pomdp.transition)], 0)  # noqa: B905
    return value


@pytest.mark.parametrize("name", COUNTS)
def test_counts(name):
    pomdp = zoo.make(name)
    counts = (pomdp.states, pomdp.actions, pomdp.observations, int(pomdp.terminal.sum()))
    assert counts == COUNTS[name]


def test_every_one_is_counted_and_has_an_id():
    assert set(COUNTS) - {"rocksample-5-3"} == set(zoo.ZOO) == set(IDS)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("tigre", "did you mean 'tiger'"),
        ("rocksample-7-9-", "did you mean 'rocksample-7-8'"),
        ("rocksample-2-5", "different cells"),
        ("rocksample-99-20", "more than 2000000 states"),
    ],
)
def test_a_name_that_is_none(name, message):
    with pytest.raises(MulvError, match=message):
        zoo.make(name)


def test_parameters_are_checked_by_name_and_value():
    assert zoo.make("lock", H=4, L=2).horizon == 4
    with pytest.raises(MulvError, match="no parameter 'K'; it has: H, L, actions"):
        zoo.make("lock", K=4)
    with pytest.raises(MulvError, match="1 <= L <= H"):
        zoo.make("lock", H=2, L=3)


# ------------------------------------------------------------------------------------------------- Tiger


def test_tiger_is_worth_what_is_published():
    """By value iteration on its reachable beliefs, which are those of a count of left against right."""
    pomdp = zoo.make("tiger")
    beliefs, index, follow = [pomdp.start], {pomdp.start.round(12).tobytes(): 0}, {}
    for i in itertools.takewhile(lambda i: i < len(beliefs), itertools.count()):
        for a in range(3):
            for o, p in enumerate(belief.observation_probabilities(pomdp, beliefs[i], a)):
                b = belief.update(pomdp, beliefs[i], a, o)
                key = b.round(12).tobytes()
                if key not in index:
                    index[key] = len(beliefs)
                    beliefs.append(b)
                follow.setdefault((i, a), []).append((index[key], p))
    value = np.zeros(len(beliefs))
    for _ in range(400):
        for i in range(len(beliefs)):
            value[i] = max(
                pomdp.reward[a] @ beliefs[i] + 0.95 * sum(p * value[j] for j, p in follow[i, a])
                for a in range(3)
            )
    assert value[0] == pytest.approx(19.371, abs=0.002)
    assert pomdp.start @ value_of_mdp(pomdp, 800) == pytest.approx(200, abs=1e-6)  # ten a step


# ------------------------------------------------------------------------------------- Hallway, Hallway2


def test_hallway_has_the_published_rows():
    """Of the file: some of each kind, by number."""
    pomdp = zoo.make("hallway")
    stay, forward, right, around, left = pomdp.transition
    assert row(stay, 7) == {7: 1.0}
    assert row(forward, 8) == pytest.approx({13: 0.05, 44: 0.025, 46: 0.025, 7: 0.05, 8: 0.85})
    assert row(forward, 33) == pytest.approx({37: 0.8, 58: 0.05, 29: 0.025, 31: 0.025, 33: 0.1})
    assert row(forward, 44) == pytest.approx({8: 0.8, 44: 0.2})
    assert row(forward, 3) == pytest.approx({5: 0.025, 7: 0.025, 3: 0.95})
    assert row(right, 21) == pytest.approx({20: 0.1, 21: 0.1, 22: 0.7, 23: 0.1})
    assert row(around, 21) == pytest.approx({20: 0.15, 21: 0.1, 22: 0.15, 23: 0.6})
    assert row(left, 21) == pytest.approx({20: 0.7, 21: 0.1, 22: 0.1, 23: 0.1})
    for goal in range(56, 60):
        assert row(forward, goal) == pytest.approx(dict.fromkeys(range(56), 1 / 56))
    seen = pomdp.observation[0].toarray()
    published = {0: (11, 0.692550), 1: (7, 0.692550), 5: (5, 0.731024), 9: (1, 0.771637), 11: (4, 0.771637)}
    for s, (o, p) in published.items():
        assert seen[s].argmax() == o
        assert seen[s, o] == pytest.approx(p, abs=2e-5)
    assert seen[0, 0] == pytest.approx(0.000949, abs=2e-6)
    assert [seen[s].argmax() for s in (10, 18, 26, 34, 56, 59)] == [16, 17, 18, 19, 20, 20]
    assert pomdp.reward[1, 34] == pytest.approx(0.8)  # ahead of the goal, going forward
    assert pomdp.reward[0].max() == 0


def test_hallway2_has_the_published_rows():
    pomdp = zoo.make("hallway2")
    forward = pomdp.transition[1]
    assert row(forward, 0) == pytest.approx({5: 0.05, 24: 0.025, 26: 0.025, 0: 0.9})
    assert row(forward, 24) == pytest.approx({0: 0.8, 40: 0.025, 42: 0.025, 23: 0.05, 24: 0.1})
    assert row(forward, 65) == pytest.approx({48: 0.05, 69: 0.8, 90: 0.05, 65: 0.1})
    assert row(forward, 82) == pytest.approx({60: 0.025, 62: 0.025, 85: 0.05, 79: 0.05, 82: 0.85})
    assert row(forward, 91) == pytest.approx({64: 0.05, 87: 0.8, 91: 0.15})
    assert set(row(forward, 68)) == set(range(92)) - {68, 69, 70, 71}
    seen = pomdp.observation[0].toarray()
    assert {s: seen[s].argmax() for s in (0, 10, 37, 65, 72, 83, 68)} == {
        0: 9, 10: 2, 37: 13, 65: 2, 72: 3, 83: 1, 68: 16,
    }  # fmt: skip
    assert Map(HALLWAY2).goal == 17


@pytest.mark.parametrize("name", ["hallway", "hallway2"])
def test_a_robot_that_turns_as_the_world_does_feels_the_same(name):
    """Four quarter turns are none, and a wall ahead is one to the left after a turn to the right."""
    pomdp = zoo.make(name)
    seen = pomdp.observation[0].toarray()[:, :16]
    unmarked = np.flatnonzero(seen.sum(axis=1) > 0.5)
    turned = [(o << 1 | o >> 3) & 15 for o in range(16)]  # front, right, back, left: one place on
    checked = 0
    for s in unmarked:
        east_of = s - s % 4 + (s + 1) % 4
        if east_of in unmarked:
            np.testing.assert_allclose(seen[east_of][turned], seen[s], atol=1e-15)
            checked += 1
    assert checked > 40


# --------------------------------------------------------------------------------------------------- Tag


def test_tag_has_the_published_rows():
    pomdp = zoo.make("tag")
    north, west, catch = pomdp.transition[0], pomdp.transition[3], pomdp.transition[4]
    assert row(north, 0) == pytest.approx({300: 0.6, 301: 0.2, 310: 0.2})
    assert row(north, 15) == pytest.approx({315: 0.2, 316: 0.4, 320: 0.4})
    assert row(north, 31) == pytest.approx({330: 0.2, 331: 0.4, 332: 0.2, 341: 0.2})
    assert row(west, 744) == pytest.approx({711: 0.2, 713: 0.2, 714: 0.2, 715: 0.2, 717: 0.2})
    assert row(west, 806) == pytest.approx({803: 0.2, 806: 0.6, 807: 0.2})
    assert row(catch, 31) == {59: 1.0}
    assert row(catch, 32) == {32: 1.0}
    assert row(north, 59) == {59: 1.0}
    assert [pomdp.observation[0][s].toarray().argmax() for s in (31, 32, 59)] == [29, 1, 1]
    assert pomdp.observation[4][31].toarray().argmax() == 1
    assert pomdp.reward[:, [31, 32, 59]].tolist() == [[-1, -1, 0]] * 4 + [[10, -10, 0]]
    assert pomdp.start[[0, 29]].tolist() == [1 / 841, 0]


# -------------------------------------------------------------------------------------------- RockSample


def test_rocksample_44_by_hand():
    """State (x, y, r) is 16·(4x + y) + r; rocks at (3,1) (2,1) (1,3) (1,0), the first the highest bit."""
    pomdp = zoo.make("rocksample-4-4")
    north, east, south, west, check0, *_, sample = range(9)
    at = lambda x, y, r: 16 * (4 * x + y) + r  # noqa: E731
    np.testing.assert_array_equal(np.flatnonzero(pomdp.start), [at(0, 2, r) for r in range(16)])
    assert row(pomdp.transition[north], at(0, 2, 5)) == {at(0, 3, 5): 1.0}
    assert row(pomdp.transition[east], at(3, 1, 5)) == {256: 1.0}
    assert row(pomdp.transition[sample], at(3, 1, 0b1010)) == {at(3, 1, 0b0010): 1.0}
    assert row(pomdp.transition[sample], at(0, 0, 0b1010)) == {256: 1.0}
    assert row(pomdp.transition[check0], at(0, 0, 9)) == {at(0, 0, 9): 1.0}
    rewards = {
        (east, at(3, 1, 5)): 10, (west, at(0, 1, 5)): -100, (north, at(1, 3, 5)): -100,
        (south, at(1, 0, 5)): -100, (south, at(1, 1, 5)): 0, (check0, at(1, 1, 5)): 0,
        (sample, at(3, 1, 8)): 10, (sample, at(3, 1, 7)): -10, (sample, at(0, 0, 15)): -100, (sample, 256): 0,
    }  # fmt: skip
    assert {key: pomdp.reward[key] for key in rewards} == rewards
    efficiency = np.exp(-np.hypot(3, 1))  # of (0, 0) to (3, 1)
    good, bad = pomdp.observation[check0][[at(0, 0, 8), at(0, 0, 7)]].toarray()
    np.testing.assert_allclose(good, [0.5 + efficiency / 2, 0.5 - efficiency / 2], atol=1e-12)
    np.testing.assert_allclose(bad, good[::-1], atol=1e-12)
    assert pomdp.observation[check0][[at(3, 1, 8)]].toarray()[0].tolist() == [1, 0]


def test_rocksample_78_has_the_better_sensor():
    pomdp = zoo.make("rocksample-7-8")
    start = (0 * 7 + 3) * 256
    np.testing.assert_array_equal(np.flatnonzero(pomdp.start), start + np.arange(256))
    check_first = pomdp.observation[4][[start + 128, start]].toarray()  # rock 0 at (2, 0), good and bad
    p = 0.5 + 0.5 * 2 ** (-np.hypot(2, 3) / 20)
    np.testing.assert_allclose(check_first, [[p, 1 - p], [1 - p, p]], atol=1e-12)


def test_rocksample_is_worth_its_exit_at_least_and_its_rocks_at_most():
    pomdp = zoo.make("rocksample-4-4")
    upper = pomdp.start @ value_of_mdp(pomdp)
    assert 10 * 0.95**3 < upper < 10 * 0.95**3 + 4 * 10
    assert upper > 18.03  # what a solver makes of it without seeing the rocks


def test_rocksample_turned_over_is_the_same():
    """South for north: the values are each other's mirror image."""
    field = Field((0, 1), ((1, 0), (2, 2)), 3.0)
    mirrored = Field((0, 1), ((1, 2), (2, 0)), 3.0)
    one, other = (value_of_mdp(rocksample(3, 2, field=f))[:-1].reshape(3, 3, 4) for f in (field, mirrored))
    np.testing.assert_allclose(one, other[:, ::-1], atol=1e-9)
    assert not np.allclose(one, other)


# --------------------------------------------------------------------------------------------- light-dark


def test_light_dark_reads_exactly_in_the_light_only():
    pomdp = zoo.make("light-dark")
    read = pomdp.observation[0].toarray()[:21]
    assert read[15, 15] == 1
    spread = [np.sqrt(p @ (np.arange(21) - x) ** 2) for x, p in enumerate(read)]
    assert np.all(np.diff(spread[6:16]) < 0)
    assert spread[9] == pytest.approx(6 / np.sqrt(2), rel=0.15)
