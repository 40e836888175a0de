"""Noise that lasts: pink, its power falling as one over the frequency."""

import jax
from jaxtyping import Array, Float, Int, PRNGKeyArray


def pink_noise(
    key: PRNGKeyArray, step: Int[Array, ""], shape: tuple[int, ...], octaves: int
) -> Float[Array, "*shape"]:
    """Standard normal noise at a step, by the key and the step alone.

    The sum, at unit variance, of white noises of which the k-th is drawn anew every 2^k steps (Voss). One
    octave is white.
    """
    if octaves == 1:  # as runs drew it before there were octaves
        return jax.random.normal(jax.random.split(jax.random.fold_in(key, step), shape[0])[0], shape)
    # Each by a call of its own: under vmap, keys of `rbg` would all draw from the first.
    drawn = [
        jax.random.normal(jax.random.fold_in(jax.random.fold_in(key, k), step // 2**k), shape)
        for k in range(octaves)
    ]
    return sum(drawn[1:], drawn[0]) / octaves**0.5
