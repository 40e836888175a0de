"""The shape of a replay on disk: a file a column, a row a step."""

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from mulv.core.spec import EnvSpec


@dataclass(frozen=True)
class ReplayLayout:
    """Shape of a replay on disk."""

    obs_shape: tuple[int, ...]
    obs_dtype: str
    act_dim: int
    lanes: int
    capacity: int  # rows a lane that are sampled from
    slack: int  # further rows a lane, kept for resuming

    @classmethod
    def of(cls, spec: EnvSpec, *, lanes: int, capacity: int, slack: int) -> "ReplayLayout":
        """A layout for an environment; `capacity` and `slack` are rows over all lanes."""
        per_lane = (-(-capacity // lanes), -(-slack // lanes))
        return cls(spec.obs_shape, spec.obs_dtype, spec.act_dim, lanes, *per_lane)

    @property
    def ring(self) -> int:
        """Rows a lane on disk."""
        return self.capacity + self.slack

    @property
    def columns(self) -> dict[str, tuple[str, tuple[int, ...]]]:
        """Name, type and shape of what a row holds."""
        return {
            "obs": (self.obs_dtype, self.obs_shape),
            "action": ("float32", (self.act_dim,)),
            "reward": ("float32", ()),
            "terminated": ("bool", ()),
            "truncated": ("bool", ()),
            "step": ("int32", ()),
        }

    @property
    def file_sizes(self) -> dict[str, int]:
        """Bytes of each column's file."""
        return {
            name: np.dtype(dtype).itemsize * int(np.prod(shape, dtype=int)) * self.ring * self.lanes
            for name, (dtype, shape) in self.columns.items()
        }

    @property
    def nbytes(self) -> int:
        """Bytes on disk."""
        return sum(self.file_sizes.values())


def reserve(path: Path, size: int) -> None:
    """Claim a file's blocks now; a sparse file would meet a full disk as a crash inside a memory write."""
    with path.open("ab") as file:
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(file.fileno(), 0, size)
        file.truncate(size)
