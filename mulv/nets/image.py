"""The paper's image networks: frames of 64×64×3 to vectors and back.

Encoder Conv(32)×4, MLP(100); decoder MLP(100), MLP(1024), ConvT(32)×4, Conv(3); channels may be fewer, and
the decoder may have fewer layers for smaller pictures. The paper gives only channels: here kernels of size 4
halve or double the size (64, 32, 16, 8, 4), the 1024 units are 4×4×64, and the last kernel has size 3. The
decoder uses SiLU: with ReLU it may output the mean frame for long before it learns small objects.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray, UInt8

from mulv.core.errors import MulvError
from mulv.core.spec import FRAME_SHAPE
from mulv.nets.conv import Conv, ConvMethod
from mulv.nets.trunk import Linear

CHANNELS, LAYERS, SMALLEST = 32, 4, 4
UNITS = (100, 1024)  # of the decoder's layers before its convolutions
# Mean and deviation of ImageNet, as in the paper.
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)

Frame = UInt8[Array, "64 64 3"]
Picture = Float[Array, "64 64 3"]  # a frame as networks see it


def normalise(frame: Frame) -> Picture:
    """The frame as floats, normalised channel by channel."""
    if frame.shape != FRAME_SHAPE or frame.dtype != jnp.uint8:
        raise MulvError(f"a frame must be {FRAME_SHAPE} of uint8; this is {frame.shape} of {frame.dtype}")
    mean, std = (jnp.broadcast_to(jnp.array(value), FRAME_SHAPE) for value in (MEAN, STD))
    return (frame.astype(jnp.float32) / 255 - mean) / std


def denormalise(picture: Picture) -> Frame:
    """The inverse of `normalise`: the frame as bytes, rounded and clipped."""
    mean, std = (jnp.broadcast_to(jnp.array(value), FRAME_SHAPE) for value in (MEAN, STD))
    return jnp.round(jnp.clip(picture * std + mean, 0, 1) * 255).astype(jnp.uint8)


class ImageEncoder(eqx.Module):
    """Conv(channels)×4, MLP(out_dim): a normalised frame to a vector."""

    convs: list[Conv]
    head: Linear

    def __init__(self, out_dim: int = 100, channels: int = CHANNELS, *, key: PRNGKeyArray):
        *conv_keys, head_key = jax.random.split(key, LAYERS + 1)
        self.convs = [
            Conv(3 if i == 0 else channels, channels, kernel=4, stride=2, padding=1, key=k)
            for i, k in enumerate(conv_keys)
        ]
        self.head = Linear(SMALLEST**2 * channels, out_dim, key=head_key)

    def __call__(self, picture: Picture, method: ConvMethod | None = None) -> Float[Array, "out"]:
        x = picture
        for layer in self.convs:
            x = jax.nn.relu(layer(x, method))
        return self.head(x.ravel())


def shrink(picture: Picture, size: int) -> Float[Array, "size size 3"]:
    """The picture reduced to a size that divides its own, by means over squares."""
    block = FRAME_SHAPE[0] // size
    return jnp.mean(picture.reshape(size, block, size, block, 3), axis=(1, 3))


def enlarge(picture: Float[Array, "size size 3"]) -> Picture:
    """The picture enlarged to full size, by repeating pixels."""
    block = FRAME_SHAPE[0] // picture.shape[0]
    return jnp.repeat(jnp.repeat(picture, block, axis=0), block, axis=1)


class ImageDecoder(eqx.Module):
    """MLP(100), MLP(1024), ConvT(channels)×4, Conv(3): a vector to a normalised frame; ×3 for 32×32."""

    first: Linear
    second: Linear
    convs: list[Conv]
    head: Conv

    def __init__(self, in_dim: int = 100, channels: int = CHANNELS, size: int = 64, *, key: PRNGKeyArray):
        layers = (size // SMALLEST).bit_length() - 1
        first_key, second_key, head_key, *conv_keys = jax.random.split(key, layers + 3)
        few, many = UNITS
        self.first = Linear(in_dim, few, key=first_key, scale=2.0**0.5)
        self.second = Linear(few, many, key=second_key, scale=2.0**0.5)
        self.convs = [
            Conv(
                many // SMALLEST**2 if i == 0 else channels,
                channels,
                kernel=4,
                stride=2,
                padding=1,
                enlarges=True,
                key=k,
            )
            for i, k in enumerate(conv_keys)
        ]
        self.head = Conv(channels, 3, kernel=3, stride=1, padding=1, key=head_key)

    def __call__(self, z: Float[Array, "in"]) -> Float[Array, "size size 3"]:
        x = jax.nn.silu(self.second(jax.nn.silu(self.first(z)))).reshape(SMALLEST, SMALLEST, -1)
        for layer in self.convs:
            x = jax.nn.silu(layer(x))
        return self.head(x)
