"""Where experience is kept and batches are cut."""

from mulv.data.replay import Replay, ReplayLayout

__all__ = ["Replay", "ReplayLayout"]
