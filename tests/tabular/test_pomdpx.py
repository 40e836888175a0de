"""POMDPX: a factored file against the arrays it means, errors by their line, and noise."""

import contextlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mulv.core.errors import MulvError
from mulv.tabular.files import parse_pomdpx, read_pomdp

# A rover in one of two places, seen; a rock that is good or bad, not seen but by a check from place s1.
ROVER = """<?xml version="1.0" encoding="ISO-8859-1"?>
<pomdpx version="1.0" id="rover">
<Description>A rover and a rock</Description>
<Discount>0.95</Discount>
<Variable>
 <StateVar vnamePrev="rover_0" vnameCurr="rover_1" fullyObs="FULLY"><NumValues>2</NumValues></StateVar>
 <StateVar vnamePrev="rock_0" vnameCurr="rock_1"><ValueEnum>good bad</ValueEnum></StateVar>
 <ObsVar vname="sensor"><ValueEnum>ogood obad</ValueEnum></ObsVar>
 <ActionVar vname="act"><ValueEnum>move check sample</ValueEnum></ActionVar>
 <RewardVar vname="reward"/>
</Variable>
<InitialStateBelief>
 <CondProb><Var>rover_0</Var><Parent>null</Parent><Parameter type="TBL">
  <Entry><Instance>-</Instance><ProbTable>1.0 0.0</ProbTable></Entry></Parameter></CondProb>
 <CondProb><Var>rock_0</Var><Parent>null</Parent><Parameter>
  <Entry><Instance>-</Instance><ProbTable>uniform</ProbTable></Entry></Parameter></CondProb>
</InitialStateBelief>
<StateTransitionFunction>
 <CondProb><Var>rover_1</Var><Parent>act rover_0</Parent><Parameter type="TBL">
  <Entry><Instance>* - -</Instance><ProbTable>identity</ProbTable></Entry>
  <Entry><Instance>move - -</Instance><ProbTable>0.1 0.9 0.8 0.2</ProbTable></Entry></Parameter></CondProb>
 <CondProb><Var>rock_1</Var><Parent>act rover_1 rock_0</Parent><Parameter type="TBL">
  <Entry><Instance>* * - -</Instance><ProbTable>identity</ProbTable></Entry>
  <Entry><Instance>sample s1 - bad</Instance><ProbTable>1 1</ProbTable></Entry>
  <Entry><Instance>sample s1 * good</Instance><ProbTable>0</ProbTable></Entry></Parameter></CondProb>
</StateTransitionFunction>
<ObsFunction>
 <CondProb><Var>sensor</Var><Parent>act rover_1 rock_1</Parent><Parameter type="TBL">
  <Entry><Instance>* * * -</Instance><ProbTable>1 0</ProbTable></Entry>
  <Entry><Instance>check s0 * -</Instance><ProbTable>uniform</ProbTable></Entry>
  <Entry><Instance>check s1 - -</Instance><ProbTable>0.9 0.1 0.2 0.8</ProbTable></Entry>
 </Parameter></CondProb>
</ObsFunction>
<RewardFunction>
 <Func><Var>reward</Var><Parent>act rover_0 rock_0</Parent><Parameter type="TBL">
  <Entry><Instance>sample s1 -</Instance><ValueTable>10 -10</ValueTable></Entry>
  <Entry><Instance>sample s0 *</Instance><ValueTable>-100</ValueTable></Entry></Parameter></Func>
 <Func><Var>reward</Var><Parent>rover_1 sensor</Parent><Parameter type="TBL">
  <Entry><Instance>s1 obad</Instance><ValueTable>3</ValueTable></Entry></Parameter></Func>
</RewardFunction>
</pomdpx>
"""
HIDDEN, SHOWN = ROVER.replace("FULLY", "false"), ROVER.replace("FULLY", "true")


def test_factors_are_multiplied_out():
    pomdp = parse_pomdpx(HIDDEN)
    assert pomdp.state_names == ("s0-good", "s0-bad", "s1-good", "s1-bad")
    assert pomdp.action_names == ("move", "check", "sample")
    assert (pomdp.observation_names, pomdp.discount) == (("ogood", "obad"), 0.95)
    T, O = pomdp.dense()  # noqa: E741
    np.testing.assert_allclose(T[0], np.kron([[0.1, 0.9], [0.8, 0.2]], np.eye(2)))
    np.testing.assert_array_equal(T[1], np.eye(4))
    np.testing.assert_array_equal(T[2], [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 0, 1], [0, 0, 0, 1]])
    np.testing.assert_array_equal(O[0], [[1, 0]] * 4)
    np.testing.assert_allclose(O[1], [[0.5, 0.5], [0.5, 0.5], [0.9, 0.1], [0.2, 0.8]])
    np.testing.assert_array_equal(pomdp.start, [0.5, 0.5, 0, 0])
    of_sight = np.array([[0, 0, 0, 0], [0, 0, 0.3, 2.4], [0, 0, 0, 0]])  # 3 for "obad" seen in s1
    of_sample = np.outer([0, 0, 1], [-100, -100, 10, -10])
    np.testing.assert_allclose(pomdp.reward, of_sight + of_sample)


def test_a_fully_observed_variable_is_seen():
    hidden, shown = parse_pomdpx(HIDDEN), parse_pomdpx(SHOWN)
    assert shown.observation_names == ("ogood-s0", "ogood-s1", "obad-s0", "obad-s1")
    seen = shown.dense().O.reshape(3, 4, 2, 2)  # sensor, place
    np.testing.assert_allclose(seen.sum(axis=3), hidden.dense().O)
    np.testing.assert_array_equal(seen.sum(axis=2), np.tile([[1, 0], [1, 0], [0, 1], [0, 1]], (3, 1, 1)))
    np.testing.assert_allclose(shown.reward, hidden.reward)


def test_the_suffix_says_which_format_it_is(tmp_path):
    path = tmp_path / "rover.pomdpx"
    path.write_text(HIDDEN)
    assert read_pomdp(path).states == 4
    path.rename(tmp_path / "rover.pomdp")
    with pytest.raises(MulvError, match=r"rover\.pomdp:1: '<\?xml' is not a word"):
        read_pomdp(tmp_path / "rover.pomdp")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("<ProbTable>1.0 0.0<", "<ProbTable>1.0 0.1<", ":13: probabilities here sum to 1.1"),
        ("<ProbTable>1.0 0.0<", "<ProbTable>2 -1<", ":13: probabilities here are negative"),
        ("<ProbTable>1.0 0.0<", "<ProbTable>1.0<", ":14: <ProbTable> needs 2 numbers, found 1"),
        ("<ProbTable>1.0 0.0<", "<ProbTable>1.0 x<", ":14: 'x' is not a number"),
        ("<ProbTable>1.0 0.0<", "<ProbTable>nan 1<", ":14: 'nan' is not a number"),
        ("sample s1 - bad", "sample s3 - bad", ":24: 's3' is not a value of rover_1"),
        ("sample s1 - bad", "sample s1 -", ":24: the instance needs 4 words"),
        ("act rover_1 rock_0", "act rover_2 rock_0", ":22: rover_2 is not a variable"),
        ("<Var>rock_1</Var>", "<Var>rover_1</Var>", ":22: .* each once"),
        ("<Parameter>", '<Parameter type="DD">', ":15: only tables are read, not type 'DD'"),
        ("<NumValues>2<", "<NumValues>9999999<", ":6: NumValues is not a count"),
        ("<NumValues>2<", "<NumValues>9999<", ":5: multiplied out"),
        ("good bad</V", "good good</V", ":7: .* different values"),
        ('vname="sensor"', 'vname="act"', ":5: two variables have one name"),
        ('vname="sensor"', "", ":8: <ObsVar> needs the attribute vname"),
        ("<Discount>0.95</Discount>", "", ":2: <pomdpx> needs one <Discount>, found 0"),
        ("0.95", "1.95", "discount is 1.95"),
        ("</pomdpx>", "", "no element found"),
        ("<pomdpx ", '<!DOCTYPE x [<!ENTITY a "b">]><pomdpx ', ":2: document types are not read"),
        ("<pomdpx ", '<!DOCTYPE x SYSTEM "http://localhost/x"><pomdpx ', ":2: document types are not read"),
        ("A rover", "&a; rover", ":3: undefined entity"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(old, new, message):
    assert old in HIDDEN
    with pytest.raises(MulvError, match=message) as caught:
        parse_pomdpx(HIDDEN.replace(old, new, 1))
    assert "\n" not in str(caught.value)


def test_too_many_variables_are_refused():
    one = ' <ObsVar vname="v{}"><NumValues>1</NumValues></ObsVar>\n'
    many = "".join(one.format(i) for i in range(80))
    with pytest.raises(MulvError, match="too many"):
        parse_pomdpx(HIDDEN.replace("</Variable>", f"{many}</Variable>"))


# ------------------------------------------------------------------------------------------------- noise


@given(st.text(max_size=200))
def test_any_text_is_read_or_refused(text):
    for each in (text, f"<pomdpx>{text}</pomdpx>"):
        with contextlib.suppress(MulvError):
            parse_pomdpx(each)


PIECES = (
    "-",
    "*",
    "s0",
    "good",
    "0.5",
    "1e400",
    "-7",
    "uniform",
    "identity",
    "null",
    "rock_0",
    "</Entry>",
    "<Var/>",
)


@given(st.lists(st.tuples(st.integers(0, 10**4), st.integers(0, 6), st.sampled_from(PIECES)), max_size=4))
@settings(max_examples=300)
def test_a_valid_file_with_some_words_changed_is_read_or_refused(changes):
    words = SHOWN.replace("<", " <").replace(">", "> ").replace("< ", "<").split(" ")
    for place, length, new in changes:
        place %= len(words)
        words[place : place + length] = [new]
    with contextlib.suppress(MulvError):
        parse_pomdpx(" ".join(words))


@given(st.lists(st.tuples(st.integers(0, 10**4), st.characters()), max_size=4))
@settings(max_examples=200)
def test_a_valid_file_with_some_characters_changed_is_read_or_refused(changes):
    text = list(HIDDEN)
    for place, new in changes:
        text[place % len(text)] = new
    with contextlib.suppress(MulvError):
        parse_pomdpx("".join(text))
