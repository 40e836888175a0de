"""Random shifts against a loop, and what they leave as it was; frames as channels of one picture."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from mulv.core.errors import MulvError
from mulv.core.types import Window
from mulv.nets.augment import random_shift, shift
from mulv.nets.stack import StackEncoder, encoding_dim, stack_frames

SHAPE = (7, 5, 2)
PAD = 4
pictures = arrays(np.uint8, SHAPE)
offsets = st.tuples(st.integers(-PAD, PAD), st.integers(-PAD, PAD))
compiled_shift = jax.jit(shift)


def pad_and_crop(picture: np.ndarray, by: tuple[int, int]) -> np.ndarray:
    """As published: repeat the edges, then cut out a part of the old size."""
    wide = np.pad(picture, ((PAD, PAD), (PAD, PAD), (0, 0)), mode="edge")
    top, left = PAD + by[0], PAD + by[1]
    return wide[top : top + SHAPE[0], left : left + SHAPE[1]]


@given(pictures, offsets)
def test_a_shift_repeats_the_edges_and_cuts_out(picture, by):
    np.testing.assert_array_equal(compiled_shift(picture, jnp.array(by)), pad_and_crop(picture, by))


@given(st.integers(0, 255), offsets)
def test_a_constant_picture_stays_itself(value, by):
    picture = np.full(SHAPE, value, np.uint8)
    np.testing.assert_array_equal(compiled_shift(picture, jnp.array(by)), picture)


@given(pictures, offsets)
def test_shifting_back_restores_all_that_did_not_leave(picture, by):
    there = compiled_shift(picture, jnp.array(by))
    back = np.asarray(compiled_shift(there, -jnp.array(by)))
    inside = tuple(slice(max(d, 0), size + min(d, 0)) for d, size in zip(by, SHAPE[:2], strict=True))
    np.testing.assert_array_equal(back[inside], picture[inside])


def test_what_left_is_gone():
    picture = np.zeros(SHAPE, np.uint8)
    picture[0] = 9
    down = compiled_shift(picture, jnp.array([1, 0]))
    assert not np.asarray(compiled_shift(down, jnp.array([-1, 0]))).any()


def test_every_offset_is_drawn_equally_often_and_channels_move_together():
    """A picture's pixels name their place, so the middle one says by how much it was moved."""
    size, pad, number = 5, 2, 5000
    place = np.arange(size * size, dtype=np.uint8).reshape(size, size, 1)
    moved = random_shift(
        jnp.broadcast_to(jnp.tile(place, (1, 1, 2)), (number, size, size, 2)), jax.random.key(0), pad=pad
    )
    np.testing.assert_array_equal(moved[..., 0], moved[..., 1])
    counts = np.bincount(np.asarray(moved[:, 2, 2, 0]), minlength=size * size)
    assert counts.size == (2 * pad + 1) ** 2
    assert np.square(counts - number / 25).sum() / (number / 25) < 60  # χ² with 24 degrees; 60 is p < 1e-4


def test_no_padding_is_no_shift():
    frames = np.random.default_rng(0).integers(0, 256, (3, *SHAPE), np.uint8)
    np.testing.assert_array_equal(random_shift(frames, jax.random.key(0), pad=0), frames)
    assert not np.array_equal(random_shift(frames, jax.random.key(0), pad=1), frames)


# ----------------------------------------------------------------------------------------- stacked frames


@pytest.mark.parametrize("real", [1, 2, 3])
def test_a_stack_is_the_frames_with_the_first_repeated(real):
    frames = np.random.default_rng(0).integers(1, 256, (3, 4, 5, 3), np.uint8)
    mask = np.arange(3) >= 3 - real
    x = Window(frames * mask[:, None, None, None], np.zeros((2, 1), np.float32), mask, np.zeros(len(mask)))
    shown = [frames[max(i, 3 - real)] for i in range(3)]
    np.testing.assert_array_equal(stack_frames(jax.tree.map(jnp.asarray, x)), np.concatenate(shown, axis=-1))


@pytest.mark.parametrize(("size", "halvings", "expected"), [(84, 1, 35), (64, 1, 25), (64, 3, 5)])
def test_an_encoding_has_the_published_size_and_says_so_beforehand(size, halvings, expected):
    def encode():
        return StackEncoder(9, 32, halvings, key=jax.random.key(0))(jnp.zeros((size, size, 9), jnp.uint8))

    assert jax.eval_shape(encode).shape == (32 * expected**2,)
    assert encoding_dim((size, size, 3), 32, halvings) == 32 * expected**2


def test_frames_that_are_too_small_are_named():
    with pytest.raises(MulvError, match=r"frames of 16x64 are too small .* lower --halvings"):
        encoding_dim((16, 64, 3), 32, 3)


def test_an_encoding_is_the_same_without_a_gradient():
    encoder = StackEncoder(9, 8, 3, key=jax.random.key(0))
    stack = np.random.default_rng(0).integers(0, 256, (32, 32, 9), np.uint8)
    with_it, without = jax.jit(lambda e, x: (e(x, "im2col"), e.without_gradient(x)))(encoder, stack)
    assert with_it.std() > 0.01
    np.testing.assert_allclose(with_it, without, atol=1e-5)
