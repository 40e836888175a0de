"""Cassandra's format: every form by hand, every error by its line, round trips, and noise."""

import contextlib
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mulv.core.errors import MulvError
from mulv.tabular import zoo
from mulv.tabular.files import format_cassandra, parse_cassandra, read_pomdp, write_pomdp
from mulv.tabular.files.lexer import KEYWORDS
from tests.tabular.support import equal, random_pomdp

TIGER = """
# the tiger, in as many forms as there are
discount: 0.95
values: reward
states: tiger-left tiger-right
actions: listen open-left open-right   # three
observations: 2
start: uniform
T: listen
identity
T: open-left
uniform
T: open-right : * uniform
O: listen
0.85 0.15000000000000002   # 1 - 0.85, as floating point has it
0.15000000000000002 0.85
O: open-left : tiger-left uniform
O: open-left : tiger-right
  0.5
  0.5
O: open-right : * : * 0.5
R: listen : * : * : * -1
R:open-left:tiger-left:*:* -100
R: open-left : tiger-right : * : * +10.0
R: open-right : tiger-left : * : * 1e1
R: 2 : 1 : * : * -.1e3
"""


def head(states="a b c", actions="2", observations="x y", extra="") -> str:
    counts = f"states: {states}\nactions: {actions}\nobservations: {observations}\n"
    return f"discount: 0.9\nvalues: reward\n{counts}{extra}"


REST = "T: * identity\nO: * uniform\n"


def test_tiger_in_many_forms_is_tiger():
    tiger = replace(zoo.make("tiger"), observation_names=())
    assert equal(parse_cassandra(TIGER), tiger)
    assert equal(parse_cassandra(" ".join(line.partition("#")[0] for line in TIGER.split("\n"))), tiger)
    other = TIGER.replace("-1\n", "-2\n")
    assert not equal(parse_cassandra(other), tiger)


@pytest.mark.parametrize(
    ("start", "expected"),
    [
        ("", [1 / 3] * 3),
        ("start: uniform", [1 / 3] * 3),
        ("start: 0.2 0.3 0.5", [0.2, 0.3, 0.5]),
        ("start: 0 1 0", [0, 1, 0]),
        ("start: b", [0, 1, 0]),
        ("start: 2", [0, 0, 1]),
        ("start include: a 2", [0.5, 0, 0.5]),
        ("start exclude: b", [0.5, 0, 0.5]),
        ("start exclude:\n a\n c", [0, 1, 0]),
    ],
)
def test_starts(start, expected):
    np.testing.assert_array_equal(parse_cassandra(head(extra=start + "\n") + REST).start, expected)


def test_reset_goes_to_the_start():
    pomdp = parse_cassandra(head(extra="start: 0.2 0.3 0.5\n") + REST + "T: 1 : b reset\nT: 0 reset\n")
    np.testing.assert_array_equal(pomdp.transition[1].toarray(), [[1, 0, 0], [0.2, 0.3, 0.5], [0, 0, 1]])
    np.testing.assert_array_equal(pomdp.transition[0].toarray(), [[0.2, 0.3, 0.5]] * 3)


def test_later_entries_override_earlier_ones():
    text = head() + REST + "T: * : * : * 0.0\nT: * : * : c 1.0\nT: 1 : a : c 0.25\nT: 1 : a : b 0.75\n"
    pomdp = parse_cassandra(text)
    np.testing.assert_array_equal(pomdp.transition[0].toarray(), [[0, 0, 1]] * 3)
    np.testing.assert_array_equal(pomdp.transition[1].toarray(), [[0, 0.75, 0.25], [0, 0, 1], [0, 0, 1]])


def test_rewards_are_expected_over_what_comes_next():
    """Against the definition, with R of every form, each overriding a part of those before."""
    rng = np.random.default_rng(0)
    base = random_pomdp(0, states=3, actions=2, observations=2, first=False)
    R = np.zeros((2, 3, 3, 2))
    lines = []

    def say(index: tuple, place: str, value: np.ndarray) -> None:
        R[index] = value
        lines.append(f"R: {place} " + " ".join(map(repr, np.ravel(value).tolist())))

    everything = slice(None)
    say((everything, everything, everything, 1), "* : * : * : 1", np.array(0.5))
    say((0, 1), "0 : 1", rng.normal(size=(3, 2)))
    say((everything, 1, 2), "* : 1 : 2", rng.normal(size=2))
    say((1, everything, 0, everything), "1 : * : 0 : *", np.array(-3.0))
    say((1, everything), "1 : *", rng.normal(size=(3, 2)))
    say((1, 2, 2, 0), "1 : 2 : 2 : 0", np.array(100.0))
    T, O = base.dense()  # noqa: E741
    expected = np.einsum("ast,ato,asto->as", T, O, R)
    text = "\n".join(line for line in format_cassandra(base).split("\n") if not line.startswith("R"))
    got = parse_cassandra(text + "\n".join(lines))
    np.testing.assert_allclose(got.reward, expected, atol=1e-12)
    costs = parse_cassandra(text.replace("values: reward", "values: cost") + "\n".join(lines))
    np.testing.assert_array_equal(costs.reward, -got.reward)


def test_rows_written_with_few_digits_are_rescaled_and_wrong_ones_are_not():
    thirds = head() + REST + "T: 0 : a 0.333333 0.333333 0.333333\n"
    np.testing.assert_allclose(
        parse_cassandra(thirds).transition[0][[0]].toarray(), [[1 / 3] * 3], atol=1e-12
    )
    with pytest.raises(MulvError, match=r"sums to 0\.9, not to one"):
        parse_cassandra(head() + REST + "T: 0 : a 0.3 0.3 0.3\n")


def test_letters_that_are_keywords_elsewhere_are_names():
    pomdp = parse_cassandra(head(actions="N E S W") + REST + "E: c\nT: E : a : a 1.0\n")
    assert pomdp.action_names == ("N", "E", "S", "W")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (head() + "T: 0 : d : a 1.0", ":6: 'd' is none of the 3 states"),
        (head() + "T: 2 identity", ":6: '2' is none of the 2 actions"),
        (head() + "T: 0 : a : b 1.5", ":6: 1.5 is not a probability"),
        (head() + "T: 0 : a : b -0.1", ":6: -0.1 is not a probability"),
        (head() + "T: 0 : a\n0.5 0.5\nO: * uniform", ":8: a row of T needs 3 numbers, found 2"),
        (head() + "T: 0 : a 0.5 0.5 0 0", ":6: expected T, O or R, found '0'"),
        (head() + "T: 0 :\n: b", ":7: ':' is none of the 3 states"),
        (head() + "T: * identity\nO: 0 identity", ":7: identity needs as many observations"),
        (head() + "T: * identity\nO: 0 : a reset", ":7: reset is for T"),
        (head() + "T: 0 identity\nO: * uniform\n", "T of action 1 in state a is never given"),
        (head() + REST + "\nT: 1 : b : b 0.5\n", ":9: T of action 1 in state b sums to 0.5"),
        (head() + REST + "R: 0 : a : b : z 1", ":8: 'z' is none of the 2 observations"),
        (head() + REST + "R: 0 : a : b : x one", ":8: expected a reward, found 'one'"),
        (head() + REST + "R: 0 : a : b : x 1e999", ":8: a reward is too large"),
        (head() + REST + "start: a", ":8: start must come before"),
        (head() + REST + "states: 3", ":8: states must come before"),
        (head() + "T: 0 : a : b 0.5 ? ", r":6: '\?' is not a word"),
        (head(states="1a b"), ":3: '1a' is not a word"),
        (head(states="a a"), ":3: two states are called 'a'"),
        (head(states="0"), ":3: states needs a count from 1 to 1000000"),
        (head(states="1" * 5000), ":3: states needs a count"),
        (head(states=""), ":4: states needs a count or names, found 'actions'"),
        (head(extra="states: 4\n"), ":6: states is given twice"),
        (head(extra="start: 0.5 0.5\n") + REST, ":7: start needs 2 numbers, found 1"),
        (head(extra="start: 0.5 0.5 0.5\n") + REST, ":6: start sums to 1.5"),
        (head(extra="start exclude: a b c\n") + REST, ":6: this leaves no state"),
        (head(extra="start include:\n") + REST, ":6: this leaves no state"),
        ("discount: 1.5", ":1: the discount is 1.5"),
        ("discount 0.5", ":1: expected a colon after discount, found '0.5'"),
        ("values: money", ":1: expected reward or cost, found 'money'"),
        ("", ":1: states are not given before the end of the file"),
        (head().replace("discount: 0.9\n", ""), "discount is not given"),
        (head(states="100000", actions="100000") + "T: * : * : * 0.0", "more than 30000000 entries"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(text, message):
    with pytest.raises(MulvError, match=message) as caught:
        parse_cassandra(text)
    assert "\n" not in str(caught.value)


@given(st.integers(0, 10**6), st.integers(1, 4), st.integers(1, 3), st.integers(1, 4))
@settings(max_examples=40)
def test_a_round_trip_changes_no_bit(seed, states, actions, observations):
    pomdp = random_pomdp(seed, states, actions, observations, first=False, zeros=0.4)
    assert equal(parse_cassandra(format_cassandra(pomdp)), pomdp)


@pytest.mark.parametrize("name", ["tiger", "hallway2", "tag", "rocksample-4-4"])
def test_the_zoo_makes_the_round_trip_through_a_file(name, tmp_path):
    pomdp = zoo.make(name)
    assert equal(read_pomdp(write_pomdp(pomdp, tmp_path / "it.pomdp")), pomdp)


def test_what_the_format_cannot_say_is_refused():
    with pytest.raises(MulvError, match="no horizon"):
        format_cassandra(zoo.make("lock"))
    with pytest.raises(MulvError, match="'reset' cannot be one of the actions"):
        format_cassandra(replace(zoo.make("tiger"), action_names=("reset", "b", "c")))
    with pytest.raises(MulvError, match="'a b' cannot"):
        format_cassandra(replace(zoo.make("tiger"), state_names=("a b", "c")))


def test_files_that_are_not_there(tmp_path):
    with pytest.raises(MulvError, match="cannot be read: No such file"):
        read_pomdp(tmp_path / "none.pomdp")
    with pytest.raises(MulvError, match="cannot be written"):
        write_pomdp(zoo.make("tiger"), tmp_path / "none" / "it.pomdp")


# ------------------------------------------------------------------------------------------------- noise


def read_or_refuse(text: str) -> None:
    with contextlib.suppress(MulvError):
        parse_cassandra(text)


@given(st.text(max_size=300))
def test_any_text_is_read_or_refused(text):
    read_or_refuse(text)


ODD = (
    ":",
    ":",
    "*",
    "0",
    "1",
    "2",
    "0.5",
    "-1",
    "1e400",
    "tiger-left",
    "listen",
    "#",
    "\n",
    "x",
    "9999999999",
)
WORDS = st.sampled_from([*sorted(KEYWORDS), *ODD])


@given(
    st.lists(st.tuples(st.integers(0, 10**4), st.integers(0, 12), st.lists(WORDS, max_size=3)), max_size=4)
)
@settings(max_examples=300)
def test_a_valid_file_with_some_words_changed_is_read_or_refused(changes):
    words = TIGER.replace("\n", " \n ").replace(":", " : ").split(" ")
    for place, length, new in changes:
        place %= len(words)
        words[place : place + length] = new
    read_or_refuse(" ".join(words))


@given(st.lists(st.tuples(st.integers(0, 10**4), st.characters()), max_size=5))
@settings(max_examples=200)
def test_a_valid_file_with_some_characters_changed_is_read_or_refused(changes):
    text = list(TIGER)
    for place, new in changes:
        text[place % len(text)] = new
    read_or_refuse("".join(text))
