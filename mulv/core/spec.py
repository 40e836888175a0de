"""Shapes and rows that environments, replay and agents exchange (no JAX, because `envs` imports it)."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from mulv.core.errors import MulvError

FRAME_SHAPE = (64, 64, 3)  # of observations that are images, of uint8


@dataclass(frozen=True)
class EnvSpec:
    """Shapes of one environment as agents and the replay see it.

    Actions are vectors of `act_dim` numbers: in [-1, 1] where continuous, one-hot where `discrete`.
    """

    obs_shape: tuple[int, ...]
    act_dim: int
    discrete: bool = False
    obs_dtype: str = "float32"

    @property
    def obs_dim(self) -> int:
        """Length of a vector observation."""
        (dim,) = self.obs_shape
        return dim

    def require_vectors(self, algorithm: str) -> None:
        """Raise an error if observations are frames, for an algorithm that needs vectors."""
        if len(self.obs_shape) != 1:
            raise MulvError(f"{algorithm} learns from vectors, and this task shows frames {self.obs_shape}")

    def require_frames(self, algorithm: str) -> None:
        """Raise an error if observations are vectors, for an algorithm that needs frames."""
        if len(self.obs_shape) != 3:
            raise MulvError(
                f"{algorithm} learns from frames, and this task shows vectors of {self.obs_shape[0]}; "
                "choose a task that ends in -px (`mulv envs`)"
            )

    def require_continuous(self, algorithm: str) -> None:
        """Raise an error if actions are discrete, for an algorithm that needs continuous ones."""
        if self.discrete:
            raise MulvError(
                f"{algorithm} needs continuous actions, and this task's are discrete; choose another --algo"
            )


@dataclass(frozen=True)
class BatchSpec:
    """The shape of a batch of transitions that the replay cuts."""

    batch_size: int
    window: int  # L: observations in x_h
    n_step: int  # rewards summed before bootstrapping
    future: int  # l: steps after x_h that the batch also holds
    gamma: float
    frames: int = 0  # windows whose o_h is also given as a frame, if windows hold embeddings


@dataclass(frozen=True)
class SequenceSpec:
    """The shape of a batch of sequences that the replay cuts, for agents with a recurrent state."""

    batch_size: int
    length: int  # T: steps of a sequence, including the burn-in
    burn_in: int = 0  # first steps, which only update the recurrent state and have no loss

    def __post_init__(self) -> None:
        if not 0 <= self.burn_in < self.length:
            raise MulvError(
                f"a sequence of {self.length} steps has no step left to learn from after a burn-in of "
                f"{self.burn_in}; make it longer, or the burn-in shorter"
            )


class Step(NamedTuple):
    """Rows for the replay; each array has one row per lane (index of an environment).

    An episode of T decisions has T+1 rows: `step` 0 is its reset, which has only an observation; row h+1
    holds a_h, r_h, o_{h+1} and whether the episode ended there. So a row never changes once written.
    """

    lane: np.ndarray  # int, index of the environment
    obs: np.ndarray
    action: np.ndarray
    reward: np.ndarray
    terminated: np.ndarray
    truncated: np.ndarray
    step: np.ndarray  # int, position in the episode

    @property
    def ended(self) -> np.ndarray:
        """Mask of rows that end their episode."""
        return self.terminated | self.truncated
