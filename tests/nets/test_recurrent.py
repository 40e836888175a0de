"""The recurrent cell against NumPy; unrolling against a Python loop, and where its gradients end."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mulv.core.errors import MulvError
from mulv.nets.recurrent import NormGRUCell, unroll

KEY = jax.random.key(0)
TIME, IN, STATE = 8, 3, 4


def random(*shape: int, seed: int = 0) -> jax.Array:
    return jnp.float32(np.random.default_rng(seed).normal(size=shape))


CELL = NormGRUCell(IN, STATE, key=KEY)
INPUTS, INITIAL = random(TIME, IN), random(STATE, seed=1)
FIRST = jnp.arange(TIME) == 5


def gru(h, x):
    h = CELL(x, h)
    return h, h


def states(inputs=INPUTS, initial=INITIAL, first=FIRST, **options):
    return unroll(gru, initial, inputs, first, **options)[1]


def slope_by_inputs(position: int, **options) -> np.ndarray:
    """For every input, how much the output at a position depends on it."""
    slope = jax.jacobian(lambda inputs: states(inputs, **options)[position])(INPUTS)
    return np.abs(np.asarray(slope)).sum(axis=(0, 2))


def test_the_cell_is_its_definition():
    scale, shift = random(3 * STATE, seed=2), random(3 * STATE, seed=3)
    cell = eqx.tree_at(lambda c: (c.norm.scale, c.norm.shift), CELL, (scale, shift))
    x, h = np.asarray(INPUTS[0]), np.asarray(INITIAL)
    parts = np.concatenate([x, h]) @ np.asarray(cell.linear.weight) + np.asarray(cell.linear.bias)
    parts = (parts - parts.mean()) / np.sqrt(parts.var() + 1e-5) * np.asarray(scale) + np.asarray(shift)
    reset, candidate, update = np.split(parts, 3)
    new = np.tanh(candidate / (1 + np.exp(-reset)))
    share = 1 / (1 + np.exp(1 - update))
    np.testing.assert_allclose(cell(INPUTS[0], INITIAL), share * new + (1 - share) * h, rtol=1e-4, atol=1e-5)


def test_an_untrained_cell_keeps_most_of_its_state():
    silent = eqx.tree_at(lambda c: c.norm.scale, CELL, jnp.zeros(3 * STATE))
    kept = 1 - 1 / (1 + np.e)
    np.testing.assert_allclose(silent(INPUTS[0], INITIAL), kept * INITIAL, rtol=1e-5)


@given(st.lists(st.booleans(), min_size=1, max_size=TIME), st.integers(0, TIME - 1))
@settings(max_examples=20)
def test_unrolling_is_a_loop_that_resets_before_the_input(first, burn_in):
    h, expected = INITIAL, []
    for begins, x in zip(first, INPUTS, strict=False):
        h = CELL(x, INITIAL if begins else h)
        expected.append(h)
    length = len(first)
    last, got = unroll(gru, INITIAL, INPUTS[:length], jnp.array(first), burn_in=min(burn_in, length - 1))
    np.testing.assert_allclose(got, jnp.stack(expected), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(last, expected[-1], rtol=1e-5, atol=1e-6)


def test_carries_inputs_and_outputs_may_be_trees():
    """A counter beside a running sum of two inputs: both begin anew at a first."""

    def step(carry, seen):
        carry = {"count": carry["count"] + 1, "sum": carry["sum"] + seen[0] * seen[1]}
        return carry, (carry["count"], carry["sum"])

    initial = {"count": jnp.int32(0), "sum": jnp.zeros(2)}
    inputs = (jnp.ones((6, 2)), jnp.arange(12.0).reshape(6, 2))
    first = jnp.array([True, False, False, False, True, False])
    for burn_in in (0, 2):
        last, (counts, sums) = unroll(step, initial, inputs, first, burn_in=burn_in)
        np.testing.assert_array_equal(counts, [1, 2, 3, 4, 1, 2])
        np.testing.assert_array_equal(sums[:, 0], [0, 2, 6, 12, 8, 18])
        assert int(last["count"]) == 2


def test_no_gradient_crosses_a_reset():
    slope = slope_by_inputs(TIME - 1)
    assert not np.any(slope[:5])
    assert (slope[5:] > 0).all()
    assert (slope_by_inputs(4)[:5] > 0).all()


def test_a_learned_initial_state_has_a_gradient_at_the_start_and_at_a_reset():
    for position in (4, TIME - 1):
        slope = jax.jacobian(lambda initial: states(initial=initial)[position])(INITIAL)  # noqa: B023
        assert np.any(np.asarray(slope))


@pytest.mark.parametrize("burn_in", [1, 3])
def test_burn_in_gives_no_gradient_to_earlier_inputs(burn_in):
    none = jnp.zeros(TIME, bool)
    slope = slope_by_inputs(TIME - 1, first=none, burn_in=burn_in)
    assert not np.any(slope[:burn_in])
    assert (slope[burn_in:] > 0).all()
    assert (slope_by_inputs(TIME - 1, first=none) > 0).all()
    assert not np.any(slope_by_inputs(burn_in - 1, first=none, burn_in=burn_in))


def test_burn_in_gives_parameters_the_gradient_of_the_rest_from_a_given_state():
    def squares(cell, initial, inputs, first, burn_in=0):
        def step(h, x):
            h = cell(x, h)
            return h, h

        return jnp.sum(unroll(step, initial, inputs, first, burn_in=burn_in)[1] ** 2)

    def loss(cell, burn_in):
        return squares(cell, INITIAL, INPUTS, FIRST, burn_in)

    def rest(cell):
        until_reset = squares(cell, states()[2], INPUTS[3:5], FIRST[3:5])
        return until_reset + squares(cell, INITIAL, INPUTS[5:], FIRST[5:])

    got, expected = eqx.filter_grad(loss)(CELL, 3), eqx.filter_grad(rest)(CELL)
    jax.tree.map(lambda g, e: np.testing.assert_allclose(g, e, rtol=1e-4, atol=1e-5), got, expected)
    whole = eqx.filter_grad(loss)(CELL, 0)
    assert not np.allclose(whole.linear.weight, expected.linear.weight, atol=1e-3)


@pytest.mark.parametrize("burn_in", [-1, TIME, TIME + 1])
def test_a_burn_in_that_leaves_nothing_is_refused(burn_in):
    with pytest.raises(MulvError, match=str(burn_in)):
        states(burn_in=burn_in)


def test_a_batch_of_sequences_is_each_by_itself():
    inputs = random(3, TIME, IN, seed=4)
    first = jnp.asarray(np.random.default_rng(5).random((3, TIME)) < 0.3)
    got = jax.vmap(lambda x, f: states(x, first=f, burn_in=2))(inputs, first)
    for i in range(3):
        np.testing.assert_allclose(got[i], states(inputs[i], first=first[i]), rtol=1e-5, atol=1e-6)
