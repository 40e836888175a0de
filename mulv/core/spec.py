"""What flows between environments, replay and agents, as NumPy sees it (no JAX here: `envs` uses it too)."""

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
        """Refuse frames on behalf of an algorithm that cannot see."""
        if len(self.obs_shape) != 1:
            raise MulvError(f"{algorithm} learns from vectors, and this task shows frames {self.obs_shape}")

    def require_frames(self, algorithm: str) -> None:
        """Refuse vectors on behalf of an algorithm that sees."""
        if len(self.obs_shape) != 3:
            raise MulvError(
                f"{algorithm} learns from frames, and this task shows vectors of {self.obs_shape[0]}; "
                "choose a task that ends in -px (`mulv envs`)"
            )

    def require_continuous(self, algorithm: str) -> None:
        """Refuse discrete actions on behalf of an algorithm that has no maximum over them."""
        if self.discrete:
            raise MulvError(
                f"{algorithm} needs continuous actions, and this task's are discrete; choose another --algo"
            )


@dataclass(frozen=True)
class BatchSpec:
    """How the replay cuts a batch: the shapes an agent learns from."""

    batch_size: int
    window: int  # L: observations in x_h
    n_step: int  # rewards summed before bootstrapping
    future: int  # l: steps after x_h that the batch also carries
    gamma: float
    frames: int = 0  # windows whose o_h is also given as a frame, where vectors stand for frames


@dataclass(frozen=True)
class SequenceSpec:
    """How the replay cuts sequences: what an agent with a recurrent state learns from."""

    batch_size: int
    length: int  # T: steps of a sequence, with those of the burn-in
    burn_in: int = 0  # of these the first, which only bring the state up to date: they bear no loss

    def __post_init__(self) -> None:
        if not 0 <= self.burn_in < self.length:
            raise MulvError(
                f"a sequence of {self.length} steps has no step left to learn from after a burn-in of "
                f"{self.burn_in}; make it longer, or the burn-in shorter"
            )


class Step(NamedTuple):
    """What some lanes (parallel environments) just produced; each array has one row a lane.

    An episode of T decisions is T+1 rows: `step` 0 is its reset, which has an observation only; row h+1
    holds a_h, r_h, o_{h+1} and whether the episode ended there. So a row never changes once written.
    """

    lane: np.ndarray  # int, which lane
    obs: np.ndarray
    action: np.ndarray
    reward: np.ndarray
    terminated: np.ndarray
    truncated: np.ndarray
    step: np.ndarray  # int, position in the episode

    @property
    def ended(self) -> np.ndarray:
        """VectorEnv whose episode ends with this row."""
        return self.terminated | self.truncated
