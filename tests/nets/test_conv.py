"""Convolutions against loops and against each other, and the paper's image networks."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mulv.core.errors import MulvError
from mulv.nets import conv as nets
from mulv.nets.conv import Conv, conv, conv_transpose, device_method
from mulv.nets.image import ImageDecoder, ImageEncoder, denormalise, normalise

# image (height, width, channels), kernel, stride, padding
CONVS = [
    ((8, 6, 3), 4, 2, 1),
    ((5, 7, 2), 3, 1, 1),
    ((8, 7, 1), 3, 2, 0),
    ((5, 6, 7), 3, 1, 1),
    ((6, 5, 7), 2, 1, 0),
]
TRANSPOSED = [((4, 3, 3), 4, 2, 1), ((3, 4, 2), 5, 3, 1), ((4, 4, 1), 3, 1, 1)]
CASES = [(conv, *case) for case in CONVS] + [(conv_transpose, *case) for case in TRANSPOSED]


def draw(image: tuple[int, int, int], kernel: int) -> tuple[np.ndarray, np.ndarray]:
    """Two images and a kernel with four outputs."""
    rng = np.random.default_rng(0)
    x, w = rng.normal(size=(2, *image)), rng.normal(size=(kernel, kernel, image[-1], 4))
    return x.astype(np.float32), w.astype(np.float32)


def naive_conv(x: np.ndarray, w: np.ndarray, stride: int, padding: int) -> np.ndarray:
    size = w.shape[0]
    padded = np.pad(x.astype(float), ((padding, padding), (padding, padding), (0, 0)))
    height, width = ((n - size) // stride + 1 for n in padded.shape[:2])
    y = np.zeros((height, width, w.shape[-1]))
    for row, column in np.ndindex(height, width):
        patch = padded[row * stride : row * stride + size, column * stride : column * stride + size]
        y[row, column] = np.einsum("ijc,ijco->o", patch, w)
    return y


def naive_transpose(x: np.ndarray, w: np.ndarray, stride: int, padding: int) -> np.ndarray:
    """With the zeros that the other way avoids."""
    apart = np.zeros((stride * (x.shape[0] - 1) + 1, stride * (x.shape[1] - 1) + 1, x.shape[2]))
    apart[::stride, ::stride] = x
    return naive_conv(apart, w, 1, w.shape[0] - 1 - padding)


def close(a, b) -> None:
    np.testing.assert_allclose(a, b, atol=1e-5 * max(1.0, np.abs(b).max()))


@pytest.mark.parametrize(("apply", "image", "kernel", "stride", "padding"), CASES)
def test_both_ways_are_the_loop_and_have_the_same_gradients(apply, image, kernel, stride, padding):
    @functools.partial(jax.value_and_grad, argnums=(0, 1), has_aux=True)
    def loss(x, w, method):
        y = jax.vmap(lambda one: apply(one, w, stride=stride, padding=padding, method=method))(x)
        return jnp.sum(jnp.sin(y)), y

    x, w = draw(image, kernel)
    (matrix, plain) = jax.jit(lambda x, w: (loss(x, w, "im2col"), loss(x, w, "plain")))(x, w)
    naive = naive_conv if apply is conv else naive_transpose
    for (_, y), _ in (matrix, plain):
        close(y, np.stack([naive(one, w, stride, padding) for one in x]))
    jax.tree.map(close, matrix, plain)


def test_the_loop_tells_a_kernel_from_its_mirror_image():
    x, w = draw((8, 6, 3), 4)
    assert np.abs(naive_conv(x[0], w, 2, 1) - naive_conv(x[0], w[::-1], 2, 1)).max() > 0.1


@pytest.mark.parametrize(
    ("backend", "method", "operation"), [("cpu", "im2col", False), ("gpu", "plain", True)]
)
def test_the_device_decides_which_way_is_taken(monkeypatch, backend, method, operation):
    monkeypatch.setattr(nets.jax, "default_backend", lambda: backend)
    assert device_method() == method
    layers = [
        Conv(3, 2, kernel=4, stride=2, padding=1, enlarges=enlarges, key=jax.random.key(0))
        for enlarges in (False, True)
    ]
    for layer in layers:
        traced = str(jax.make_jaxpr(lambda x, layer=layer: layer(x))(jnp.ones((8, 8, 3))))
        assert ("conv_general_dilated" in traced) == operation


def test_an_impossible_enlargement_is_named():
    x, w = draw((5, 5, 1), 3)
    with pytest.raises(MulvError, match="kernel 3, stride 2, padding 1 does not enlarge 2 times"):
        conv_transpose(x[0], w, stride=2, padding=1)


# ------------------------------------------------------------------------------------ the paper's networks

FRAMES = np.random.default_rng(0).integers(0, 256, (2, 64, 64, 3), np.uint8)


def parameters(module) -> int:
    return sum(leaf.size for leaf in jax.tree.leaves(module))


def shapes() -> tuple[ImageEncoder, ImageDecoder]:
    """The networks without their numbers, which take a while to draw."""
    return jax.eval_shape(lambda: (ImageEncoder(key=jax.random.key(0)), ImageDecoder(key=jax.random.key(1))))


def test_sizes_are_the_papers():
    encoder, decoder = shapes()
    convs = (16 * 3 + 3 * 16 * 32) * 32 + 4 * 32
    assert parameters(encoder) == convs + 512 * 100 + 100
    linear = 100 * 101 + 100 * 1024 + 1024
    transposed = (16 * 64 + 3 * 16 * 32) * 32 + 4 * 32
    assert parameters(decoder) == linear + transposed + 9 * 32 * 3 + 3


@pytest.mark.parametrize("enlarges", [False, True])
def test_a_layer_keeps_the_scale_of_what_it_is_given(enlarges):
    layer = Conv(16, 64, kernel=4, stride=2, padding=1, enlarges=enlarges, key=jax.random.key(0))
    x = np.random.default_rng(0).normal(size=(8, 8, 16)).astype(np.float32)
    y = jax.jit(lambda layer, x: jax.nn.relu(layer(jax.nn.relu(x) * 2**0.5))[1:-1, 1:-1])(layer, x)
    assert 0.7 < np.square(y).mean() < 1.4


def test_an_autoencoder_has_gradients_everywhere_and_learns(monkeypatch):
    monkeypatch.setattr(nets, "device_method", lambda: "plain")  # compiles in a quarter of the time

    def loss(model, frames):
        encoder, decoder = model
        pictures = jax.vmap(normalise)(frames)
        z = jax.vmap(encoder)(pictures)
        drawn = jax.vmap(decoder)(z)
        assert (z.shape, drawn.shape) == ((2, 100), (2, 64, 64, 3))
        return jnp.mean((drawn - pictures) ** 2)

    rng = np.random.default_rng(0)
    model = jax.tree.map(lambda leaf: np.float32(rng.normal(size=leaf.shape) * 0.05), shapes())
    step, losses = jax.jit(jax.value_and_grad(loss)), []
    for _ in range(3):
        value, gradient = step(model, FRAMES)
        losses.append(float(value))
        assert all(np.any(leaf) for leaf in jax.tree.leaves(gradient))
        model = jax.tree.map(lambda p, g: p - 0.01 * g, model, gradient)
    assert losses[-1] < losses[0]


def test_normalising_is_undone_exactly():
    np.testing.assert_array_equal(jax.vmap(lambda f: denormalise(normalise(f)))(FRAMES), FRAMES)
    white = normalise(np.full((64, 64, 3), 255, np.uint8))
    np.testing.assert_allclose(
        white[0, 0], (1 - np.array([0.485, 0.456, 0.406])) / [0.229, 0.224, 0.225], 1e-5
    )


@pytest.mark.parametrize(
    "frame", [FRAMES[0, :32], FRAMES[0].astype(np.float32), FRAMES[0].transpose(2, 0, 1)]
)
def test_what_is_no_frame_is_refused(frame):
    with pytest.raises(MulvError, match=r"a frame must be \(64, 64, 3\) of uint8"):
        normalise(frame)
