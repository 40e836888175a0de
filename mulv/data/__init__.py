"""The replay: stores experience and samples batches. Also recorded datasets."""

from mulv.data.layout import ReplayLayout
from mulv.data.replay import Replay

__all__ = ["Replay", "ReplayLayout"]
