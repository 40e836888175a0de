"""Independent random streams, all derived from one integer seed."""

from enum import IntEnum

import jax
import numpy as np
from jaxtyping import PRNGKeyArray


class Stream(IntEnum):
    """What a random stream is used for. Never renumber: the numbers decide the results of existing seeds."""

    INIT = 0  # network parameters
    ACT = 1  # exploration noise
    UPDATE = 2  # noise inside updates
    REPLAY = 3  # which transitions are sampled
    WARM_UP = 4  # uniform actions: before learning, and where collection asks for them
    ENV = 5  # resets of training episodes
    EVAL_ENV = 6  # resets of evaluation episodes
    EVAL_ACT = 7
    INSPECT = 8  # batches and noise of logged diagnostics; training does not depend on it


def _sequence(seed: int, stream: Stream, *path: int) -> np.random.SeedSequence:
    return np.random.SeedSequence(seed, spawn_key=(int(stream), *path))


def generator(seed: int, stream: Stream, *path: int) -> np.random.Generator:
    """A NumPy generator for a stream."""
    return np.random.Generator(np.random.PCG64(_sequence(seed, stream, *path)))


def key(seed: int, stream: Stream) -> PRNGKeyArray:
    """A JAX key for a stream; `rbg` draws several times faster than the default on a CPU."""
    return jax.random.key(int(_sequence(seed, stream).generate_state(1)[0]), impl="rbg")


def integer(seed: int, stream: Stream, *path: int) -> int:
    """A 31-bit seed for one item of a stream, such as the reset of lane and episode `path`."""
    return int(_sequence(seed, stream, *path).generate_state(1)[0] >> 1)
