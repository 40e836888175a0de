"""The layout of a replay on disk: the columns of a row, the number of rows, the size in bytes.

A lane is one environment of the vector environment, whose rows are stored in a ring of their own.
"""

from dataclasses import dataclass

import numpy as np

from mulv.core.spec import EnvSpec


@dataclass(frozen=True)
class ReplayLayout:
    """The layout of a replay on disk."""

    obs_shape: tuple[int, ...]
    obs_dtype: str
    act_dim: int
    lanes: int
    capacity: int  # rows per lane that batches are sampled from
    slack: int  # older rows per lane, kept for resuming

    @classmethod
    def of(cls, spec: EnvSpec, *, lanes: int, capacity: int, slack: int) -> "ReplayLayout":
        """A layout for an environment; `capacity` and `slack` are totals over all lanes."""
        per_lane = (-(-capacity // lanes), -(-slack // lanes))
        return cls(spec.obs_shape, spec.obs_dtype, spec.act_dim, lanes, *per_lane)

    @property
    def ring(self) -> int:
        """Rows per lane on disk."""
        return self.capacity + self.slack

    @property
    def columns(self) -> dict[str, tuple[str, tuple[int, ...]]]:
        """Type and shape of each column, by name."""
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
        """Size in bytes of each column's file."""
        return {
            name: np.dtype(dtype).itemsize * int(np.prod(shape, dtype=int)) * self.ring * self.lanes
            for name, (dtype, shape) in self.columns.items()
        }

    @property
    def nbytes(self) -> int:
        """Total size in bytes."""
        return sum(self.file_sizes.values())
