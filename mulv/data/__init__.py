"""Where experience is kept and batches are cut."""

from mulv.data.layout import ReplayLayout
from mulv.data.replay import Replay

__all__ = ["Replay", "ReplayLayout"]
