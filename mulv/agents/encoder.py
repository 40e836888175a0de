"""What makes vectors of frames, for agents that learn from the vectors."""

from abc import ABC, abstractmethod
from dataclasses import dataclass

from jaxtyping import Array, Float, UInt8

from mulv.core.types import Batch, PyTree


@dataclass(frozen=True)
class ObservationEncoder(ABC):
    """The run keeps the vector of each frame in its replay, and asks for it anew now and then."""

    dim: int  # entries of a vector
    pretraining: int  # updates that are due at once when learning starts, on what there is by then
    refreshed_per_update: int  # vectors of the replay that are made anew per update, on average

    @abstractmethod
    def embed(self, state: PyTree, o_h: UInt8[Array, "64 64 3"]) -> Float[Array, "obs"]:
        """The vector that stands for a frame."""

    @abstractmethod
    def pictures(self, state: PyTree, batch: Batch) -> UInt8[Array, "batch picture 64 64 3"]:
        """What was seen and what the agent makes of it, side by side. The batch holds frames."""
