"""Convolutions, on a CPU as matrix products (im2col), on other devices as XLA's own.

XLA's own are several times slower on a CPU. Images are one example, (height, width, channel); kernels are
(height, width, in, out). Both methods give the same numbers up to rounding.

Measure speed inside a scan, where updates run. For instance, turning a stride into blocks of pixels makes
gradients faster alone, but several times slower inside a scan.
"""

import functools
import operator
from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from mulv.core.errors import MulvError

ConvMethod = Literal["im2col", "plain"]
Image = Float[Array, "height width channel"]
Kernel = Float[Array, "kernel kernel in out"]
DIMENSIONS = ("NHWC", "HWIO", "NHWC")


def device_method() -> ConvMethod:
    """The faster method on JAX's default device; evaluated when a function is traced."""
    return "im2col" if jax.default_backend() == "cpu" else "plain"


def conv(x: Image, kernel: Kernel, *, stride: int, padding: int, method: ConvMethod | None = None) -> Image:
    """Convolution: output y is Σ_i kernel[i] · x[stride · y + i − padding], zero outside of x."""
    if (method or device_method()) == "plain":
        return _plain(x, kernel, strides=(stride, stride), padding=padding, dilation=(1, 1))
    size, _, channels, made = kernel.shape
    height, width = ((n + 2 * padding - size) // stride + 1 for n in x.shape[:2])

    def shifted(image: Image, i: int, j: int) -> Image:
        padded = jnp.pad(image, ((padding, padding), (padding, padding), (0, 0)))
        rows, columns = (slice(k, k + stride * (n - 1) + 1, stride) for k, n in ((i, height), (j, width)))
        return padded[rows, columns]

    taps = [(i, j) for i in range(size) for j in range(size)]
    if stride == 1 and made < channels:  # multiply first: the products are smaller than the neighbourhoods
        products = jnp.split(x @ kernel.transpose(2, 0, 1, 3).reshape(channels, -1), len(taps), axis=-1)
        terms = [shifted(product, i, j) for product, (i, j) in zip(products, taps, strict=True)]
        return functools.reduce(operator.add, terms)
    return _products([shifted(x, i, j) for i, j in taps], kernel.reshape(-1, made))


def conv_transpose(
    x: Image, kernel: Kernel, *, stride: int, padding: int, method: ConvMethod | None = None
) -> Image:
    """Transposed convolution to `stride` times the size: `conv` of x with stride − 1 zeros between entries.

    As matrix products: the position of an output modulo the stride decides which entries of the kernel are
    multiplied by non-zeros, so each of these phases is a small convolution of x itself.
    """
    size, before = kernel.shape[0], kernel.shape[0] - 1 - padding
    if size - 2 * padding != stride or before < 0:
        raise MulvError(
            f"a transposed convolution with kernel {size}, stride {stride}, padding {padding} does not "
            f"enlarge {stride} times; kernel − 2 · padding must be the stride"
        )
    if (method or device_method()) == "plain":
        return _plain(x, kernel, strides=(1, 1), padding=before, dilation=(stride, stride))
    height, width, _ = x.shape
    padded = jnp.pad(x, ((before, before), (before, before), (0, 0)))  # at least as much as any shift below
    phases = []
    for row in range(stride):
        for column in range(stride):
            top, left = ((before - phase) % stride for phase in (row, column))  # first entries with non-zeros
            shifted = []
            for i in range(top, size, stride):
                for j in range(left, size, stride):
                    down = before + (row + i - before) // stride
                    right = before + (column + j - before) // stride
                    shifted.append(padded[down : down + height, right : right + width])
            met = kernel[top::stride, left::stride]
            phases.append(_products(shifted, met.reshape(-1, kernel.shape[-1])))
    woven = jnp.stack(phases).reshape(stride, stride, height, width, -1)
    return woven.transpose(2, 0, 3, 1, 4).reshape(stride * height, stride * width, -1)


def _products(shifted: list[Image], weights: Float[Array, "taps out"]) -> Image:
    """The product of a matrix with every pixel's neighbourhood as a row, and the kernel as a matrix."""
    return jnp.concatenate(shifted, axis=-1) @ weights


def _plain(
    x: Image, kernel: Kernel, *, strides: tuple[int, int], padding: int, dilation: tuple[int, int]
) -> Image:
    edges = [(padding, padding)] * 2
    return jax.lax.conv_general_dilated(
        x[None], kernel, strides, edges, lhs_dilation=dilation, dimension_numbers=DIMENSIONS
    )[0]


class Conv(eqx.Module):
    """A convolution with a bias; transposed with `enlarges`."""

    kernel: Kernel
    bias: Float[Array, "out"]
    stride: int = eqx.field(static=True)
    padding: int = eqx.field(static=True)
    enlarges: bool = eqx.field(static=True)

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        *,
        kernel: int,
        stride: int,
        padding: int,
        enlarges: bool = False,
        key: PRNGKeyArray,
    ):
        # An output of a transposed convolution uses only one in stride² entries of the kernel.
        gain = 2.0 * (stride**2 if enlarges else 1)
        initialise = jax.nn.initializers.variance_scaling(gain, "fan_in", "truncated_normal")
        self.kernel = initialise(key, (kernel, kernel, in_channels, out_channels))
        self.bias = jnp.zeros(out_channels)
        self.stride, self.padding, self.enlarges = stride, padding, enlarges

    def __call__(self, x: Image, method: ConvMethod | None = None) -> Image:
        apply = conv_transpose if self.enlarges else conv
        y = apply(x, self.kernel, stride=self.stride, padding=self.padding, method=method)
        return y + jnp.broadcast_to(self.bias, y.shape)
