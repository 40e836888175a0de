"""A POMDP's arrays: what is accepted, what is refused and in which words."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_array

from mulv.core.errors import MulvError
from mulv.tabular.pomdp import POMDP


def small(**changes) -> POMDP:
    """Two states, two actions, three observations; the second state is terminal."""
    fields = {
        "transition": ([[0.5, 0.5], [0, 1]], [[1, 0], [0, 1]]),
        "observation": ([[0.2, 0.3, 0.5], [0, 0, 1]], [[1, 0, 0], [0, 1, 0]]),
        "reward": [[1, 0], [-2, 0]],
        "start": [1, 0],
        "discount": 0.9,
    }
    return POMDP(**(fields | changes))


def test_counts_names_and_arrays():
    pomdp = small()
    assert (pomdp.states, pomdp.actions, pomdp.observations) == (2, 2, 3)
    assert pomdp.observation_names == ("0", "1", "2")
    T, O = pomdp.dense()  # noqa: E741
    assert T.shape == (2, 2, 2)
    assert O.shape == (2, 2, 3)
    assert T.dtype == O.dtype == pomdp.reward.dtype == np.float64
    np.testing.assert_array_equal(T[0], [[0.5, 0.5], [0, 1]])
    np.testing.assert_array_equal(O[0, 0], [0.2, 0.3, 0.5])


def test_what_was_given_is_copied():
    given = csr_array(np.eye(2))
    pomdp = small(transition=(given, given))
    given.data[0] = 7
    assert pomdp.transition[0].data[0] == 1
    with pytest.raises(ValueError, match="read-only"):
        pomdp.reward[0] = 3


def test_a_state_that_pays_or_can_be_left_is_not_terminal():
    assert small().terminal.tolist() == [False, True]
    assert small(reward=[[1, 0], [0, 1]]).terminal.tolist() == [False, False]
    assert small(transition=(np.eye(2), [[1, 0], [1, 0]])).terminal.tolist() == [False, False]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"transition": ([[0.5, 0.4], [0, 1]], np.eye(2))}, "transition of action 0 in state 0 sums to 0.9"),
        ({"transition": (np.eye(2), [[1, 0], [2, -1]])}, "transition of action 1 in state 1 has the .* -1"),
        ({"transition": ([[np.nan, 1], [0, 1]], np.eye(2))}, "state 0 has the probability nan"),
        ({"transition": (np.eye(2), np.eye(3))}, r"transition of action 1 has shape \(3, 3\)"),
        ({"transition": (np.eye(2),)}, "transition has 1 actions, but observation has 2"),
        ({"transition": ()}, "at least one action"),
        ({"transition": ("ab", np.eye(2))}, "not a matrix of numbers"),
        ({"transition": (np.ones(2), np.eye(2))}, "must be a matrix"),
        ({"observation": (np.eye(2), np.eye(2)[:1])}, r"observation of action 1 has shape \(1, 2\)"),
        ({"reward": [[1, np.inf], [0, 0]]}, "reward of action 0 in state 1 is inf"),
        ({"reward": [1, 2]}, r"reward has shape \(2,\)"),
        ({"reward": [["a", "b"], [0, 0]]}, "reward is not an array of numbers"),
        ({"start": [0.5, 0.6]}, "start sums to 1.1"),
        ({"start": [1, 0, 0]}, r"start has shape \(3,\)"),
        ({"start": [[1, 0]]}, r"start has shape \(1, 2\)"),
        ({"initial_observation": np.eye(2)}, r"initial_observation has shape \(2, 2\)"),
        ({"initial_observation": np.eye(2, 3) / 2}, "initial_observation in state 0 sums to 0.5"),
        ({"discount": 1.5}, "discount is 1.5"),
        ({"discount": float("nan")}, "discount is nan"),
        ({"horizon": 0}, "horizon is 0"),
        ({"state_names": ("a",)}, "1 state names were given for 2 states"),
        ({"action_names": ("go", "go")}, "two actions are called 'go'"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(changes, message):
    with pytest.raises(MulvError, match=message) as caught:
        small(**changes)
    assert "\n" not in str(caught.value)


def test_replace_checks_again():
    assert replace(small(), discount=0.5).discount == 0.5
    with pytest.raises(MulvError, match="discount"):
        replace(small(), discount=-0.5)
