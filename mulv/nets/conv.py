"""Convolutions that suit the device: on a CPU in ways that XLA is fast with there, elsewhere as XLA has them.

XLA's own are slow on a CPU where there is a stride, most of all their gradients. There a kernel that is a
whole number of strides becomes one of stride 1 on blocks of pixels; any other becomes matrix products
(im2col). One example at a time, (height, width, channel); kernels are (height, width, in, out). All ways give
the same numbers up to rounding.
"""

import functools
import operator
from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from mulv.core.errors import MulvError

Method = Literal["cpu", "plain"]
Image = Float[Array, "height width channel"]
Kernel = Float[Array, "kernel kernel in out"]
DIMENSIONS = ("NHWC", "HWIO", "NHWC")


def device_method() -> Method:
    """What is fast on the device that computations go to by default; asked when a function is traced."""
    return "cpu" if jax.default_backend() == "cpu" else "plain"


def conv(x: Image, kernel: Kernel, *, stride: int, padding: int, method: Method | None = None) -> Image:
    """Convolution: output y is Σ_i kernel[i] · x[stride · y + i − padding], zero outside of x."""
    if (method or device_method()) == "plain":
        return _plain(x, kernel, strides=(stride, stride), padding=padding, dilation=(1, 1))
    size = kernel.shape[0]
    if stride == 1 or size % stride:
        return _im2col(x, kernel, stride, padding)
    needed = [stride * ((n + 2 * padding - size) // stride) + size for n in x.shape[:2]]
    edges = [(padding, whole - n - padding, 0) for n, whole in zip(x.shape[:2], needed, strict=True)]
    padded = jax.lax.pad(x, jnp.zeros((), x.dtype), [*edges, (0, 0, 0)])
    return _one_by_one(_to_blocks(padded, stride), _kernel_of_blocks(kernel, stride))


def conv_transpose(
    x: Image, kernel: Kernel, *, stride: int, padding: int, method: Method | None = None
) -> Image:
    """Transposed convolution to `stride` times the size: `conv` of x with zeros between its entries."""
    size, before = kernel.shape[0], kernel.shape[0] - 1 - padding
    if size - 2 * padding != stride or before < 0:
        raise MulvError(
            f"a transposed convolution with kernel {size}, stride {stride}, padding {padding} does not "
            f"enlarge {stride} times; kernel − 2 · padding must be the stride"
        )
    if (method or device_method()) == "plain" or size % stride:
        return _plain(x, kernel, strides=(1, 1), padding=before, dilation=(stride, stride))
    # The transpose of `conv`: each entry of x is a block of the output, `padding` of which is cut off.
    height, width, _ = x.shape
    reach = size // stride - 1  # neighbours whose blocks an output block is made of
    padded = jnp.pad(x, ((reach, reach), (reach, reach), (0, 0)))
    mirrored = _kernel_of_blocks(kernel[::-1, ::-1].swapaxes(2, 3), stride)[::-1, ::-1].swapaxes(2, 3)
    wide = _from_blocks(_one_by_one(padded, mirrored), stride)
    return wide[padding : padding + stride * height, padding : padding + stride * width]


def _to_blocks(x: Image, size: int) -> Image:
    """Squares of pixels as one pixel each, with all their channels."""
    height, width, channels = x.shape
    squares = x.reshape(height // size, size, width // size, size, channels).transpose(0, 2, 1, 3, 4)
    return squares.reshape(height // size, width // size, -1)


def _from_blocks(x: Image, size: int) -> Image:
    """What `_to_blocks` was given."""
    height, width, _ = x.shape
    squares = x.reshape(height, width, size, size, -1).transpose(0, 2, 1, 3, 4)
    return squares.reshape(height * size, width * size, -1)


def _kernel_of_blocks(kernel: Kernel, size: int) -> Kernel:
    """What of a kernel meets each pixel of each block."""
    across, _, channels, made = kernel.shape
    blocks = across // size
    squares = kernel.reshape(blocks, size, blocks, size, channels, made).transpose(0, 2, 1, 3, 4, 5)
    return squares.reshape(blocks, blocks, -1, made)


def _one_by_one(x: Image, kernel: Kernel) -> Image:
    """Stride 1 and no padding: what XLA is fast with on any device."""
    return _plain(x, kernel, strides=(1, 1), padding=0, dilation=(1, 1))


def _im2col(x: Image, kernel: Kernel, stride: int, padding: int) -> Image:
    """Every pixel's neighbourhood as a row, times the kernel as one matrix."""
    size, _, channels, made = kernel.shape
    height, width = ((n + 2 * padding - size) // stride + 1 for n in x.shape[:2])

    def shifted(image: Image, i: int, j: int) -> Image:
        padded = jnp.pad(image, ((padding, padding), (padding, padding), (0, 0)))
        rows, columns = (slice(k, k + stride * (n - 1) + 1, stride) for k, n in ((i, height), (j, width)))
        return padded[rows, columns]

    taps = [(i, j) for i in range(size) for j in range(size)]
    if stride == 1 and made < channels:  # a pixel's products are fewer than its neighbours' entries
        products = jnp.split(x @ kernel.transpose(2, 0, 1, 3).reshape(channels, -1), len(taps), axis=-1)
        terms = [shifted(product, i, j) for product, (i, j) in zip(products, taps, strict=True)]
        return functools.reduce(operator.add, terms)
    return jnp.concatenate([shifted(x, i, j) for i, j in taps], axis=-1) @ kernel.reshape(-1, made)


def _plain(
    x: Image, kernel: Kernel, *, strides: tuple[int, int], padding: int, dilation: tuple[int, int]
) -> Image:
    edges = [(padding, padding)] * 2
    return jax.lax.conv_general_dilated(
        x[None], kernel, strides, edges, lhs_dilation=dilation, dimension_numbers=DIMENSIONS
    )[0]


class Conv(eqx.Module):
    """A convolution with a bias; `enlarges` makes it a transposed one."""

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
        # An output of a transposed convolution meets only one entry in stride² of the kernel.
        gain = 2.0 * (stride**2 if enlarges else 1)
        initialise = jax.nn.initializers.variance_scaling(gain, "fan_in", "truncated_normal")
        self.kernel = initialise(key, (kernel, kernel, in_channels, out_channels))
        self.bias = jnp.zeros(out_channels)
        self.stride, self.padding, self.enlarges = stride, padding, enlarges

    def __call__(self, x: Image, method: Method | None = None) -> Image:
        apply = conv_transpose if self.enlarges else conv
        y = apply(x, self.kernel, stride=self.stride, padding=self.padding, method=method)
        return y + jnp.broadcast_to(self.bias, y.shape)
