"""The interface of encoders from frames to vectors, for agents that learn from the vectors."""

from abc import ABC, abstractmethod
from dataclasses import dataclass

from jaxtyping import Array, Float, UInt8

from mulv.core.types import Batch, PyTree


@dataclass(frozen=True)
class ObservationEncoder(ABC):
    """An encoder of frames. The run stores each frame's embedding and recomputes it from time to time."""

    dim: int  # length of an embedding
    pretraining: int  # updates at the start of learning, on the data of the warm-up
    refreshed_per_update: int  # embeddings of the replay computed again per update, on average

    @abstractmethod
    def embed(self, state: PyTree, o_h: UInt8[Array, "64 64 3"]) -> Float[Array, "obs"]:
        """The embedding of a frame."""

    @abstractmethod
    def pictures(self, state: PyTree, batch: Batch) -> UInt8[Array, "batch picture 64 64 3"]:
        """For each transition of a batch of frames, pictures of frames and of the agent's reconstructions."""
