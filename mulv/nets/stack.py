"""A window of frames stacked into channels, and DrQ-v2's encoder of it, for any frame size."""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray, UInt8

from mulv.core.errors import MulvError
from mulv.core.types import Window
from mulv.nets.conv import Conv, ConvMethod

KERNEL, LAYERS = 3, 4

Stack = UInt8[Array, "height width channel"]  # all frames of a window


def stack_frames(x: Window) -> Stack:
    """The window's frames as channels, oldest first; before an episode its first frame is repeated."""
    positions = jnp.arange(x.mask.shape[0])
    frames = x.obs[jnp.maximum(positions, jnp.argmax(x.mask))]
    _, height, width, _ = frames.shape
    return frames.transpose(1, 2, 0, 3).reshape(height, width, -1)


def encoded_sizes(frame_shape: tuple[int, ...], halvings: int) -> list[tuple[int, int]]:
    """Height and width after each convolution."""
    sizes = [(frame_shape[0], frame_shape[1])]
    for layer in range(LAYERS):
        stride = _stride(layer, halvings)
        height, width = ((size - KERNEL) // stride + 1 for size in sizes[-1])
        sizes.append((height, width))
    if min(sizes[-1]) < 1:
        raise MulvError(
            f"frames of {frame_shape[0]}x{frame_shape[1]} are too small for {LAYERS} convolutions of which "
            f"{halvings} halve the size; lower --halvings, or show larger frames"
        )
    return sizes[1:]


def encoding_dim(frame_shape: tuple[int, ...], channels: int, halvings: int) -> int:
    """Length of `StackEncoder`'s vector."""
    return channels * math.prod(encoded_sizes(frame_shape, halvings)[-1])


def _stride(layer: int, halvings: int) -> int:
    return 2 if layer < halvings else 1


class StackEncoder(eqx.Module):
    """Four convolutions of kernel 3, the first `halvings` of which halve the size, each with a ReLU."""

    convs: list[Conv]

    def __init__(self, in_channels: int, channels: int, halvings: int, *, key: PRNGKeyArray):
        self.convs = [
            Conv(
                in_channels if layer == 0 else channels,
                channels,
                kernel=KERNEL,
                stride=_stride(layer, halvings),
                padding=0,
                key=k,
            )
            for layer, k in enumerate(jax.random.split(key, LAYERS))
        ]

    def __call__(self, stack: Stack, method: ConvMethod | None = None) -> Float[Array, "encoding"]:
        x = stack.astype(jnp.float32) / 255 - 0.5
        for layer in self.convs:
            x = jax.nn.relu(layer(x, method))
        return x.ravel()

    def without_gradient(self, stack: Stack) -> Float[Array, "encoding"]:
        """The encoding, for use without gradients: only those of XLA's convolution are slow on a CPU."""
        return self(stack, "plain")
