"""Random shifts: a picture moved by a few pixels is the same picture to a critic, and a new one to overfit.

DrQ-v2 (Yarats et al. 2021) pads by repeating the edge and interpolates at a random offset; the offsets of its
code are whole pixels, where interpolation changes nothing.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int, PRNGKeyArray, Shaped

Pictures = Shaped[Array, "batch height width channel"]


def shift(
    picture: Shaped[Array, "height width channel"], by: Int[Array, "2"]
) -> Shaped[Array, "height width channel"]:
    """The picture whose pixel (i, j) is (i, j) + by of the old one; beyond an edge the edge goes on."""
    rows, columns = (
        jnp.clip(jnp.arange(size) + by[axis], 0, size - 1) for axis, size in enumerate(picture.shape[:2])
    )
    inside = "promise_in_bounds"  # so that nothing is checked for every pixel
    return picture.at[rows].get(mode=inside).at[:, columns].get(mode=inside)


def random_shift(pictures: Pictures, key: PRNGKeyArray, *, pad: int) -> Pictures:
    """Every picture by up to `pad` pixels along each axis, uniformly, with all of its channels."""
    if pad == 0:
        return pictures
    by = jax.random.randint(key, (pictures.shape[0], 2), -pad, pad + 1)
    return jax.vmap(shift)(pictures, by)
