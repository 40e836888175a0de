"""Random shifts of frames by a few pixels, as data augmentation against overfitting.

DrQ-v2 (Yarats et al. 2021) pads by repeating the edge and interpolates at a random offset. In its code the
offsets are whole pixels, for which interpolation changes nothing.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int, PRNGKeyArray, Shaped

Pictures = Shaped[Array, "batch height width channel"]


def shift(
    picture: Shaped[Array, "height width channel"], by: Int[Array, "2"]
) -> Shaped[Array, "height width channel"]:
    """The shifted picture: its pixel (i, j) is pixel (i, j) + `by` of the old one, with the edge repeated."""
    rows, columns = (
        jnp.clip(jnp.arange(size) + by[axis], 0, size - 1) for axis, size in enumerate(picture.shape[:2])
    )
    inside = "promise_in_bounds"  # no bounds check for every pixel
    return picture.at[rows].get(mode=inside).at[:, columns].get(mode=inside)


def random_shift(pictures: Pictures, key: PRNGKeyArray, *, pad: int) -> Pictures:
    """Every picture shifted by a uniform random number of up to `pad` pixels along each axis."""
    if pad == 0:
        return pictures
    by = jax.random.randint(key, (pictures.shape[0], 2), -pad, pad + 1)
    return jax.vmap(shift)(pictures, by)
