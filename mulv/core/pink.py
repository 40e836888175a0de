"""Pink noise, which is correlated over time: its power is proportional to 1 / frequency."""

import jax
from jaxtyping import Array, Float, Int, PRNGKeyArray


def pink_noise(
    key: PRNGKeyArray, step: Int[Array, ""], shape: tuple[int, ...], octaves: int
) -> Float[Array, "*shape"]:
    """Standard normal noise at a step, as a function of key and step alone.

    It is a sum of independent noises, scaled to unit variance; the k-th is drawn again every 2^k steps
    (Voss). With one octave it is white noise.
    """
    if octaves == 1:  # drawn in this way so that older runs stay reproducible
        return jax.random.normal(jax.random.split(jax.random.fold_in(key, step), shape[0])[0], shape)
    # A separate call for each, because under vmap `rbg` would use the first key for all.
    drawn = [
        jax.random.normal(jax.random.fold_in(jax.random.fold_in(key, k), step // 2**k), shape)
        for k in range(octaves)
    ]
    return sum(drawn[1:], drawn[0]) / octaves**0.5
