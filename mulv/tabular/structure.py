"""L-decodability: does the window tell as much about the state as the whole history does?

Definition (L-decodability): there is a decoder p* with p*(x_h) = b(τ_h). It exists exactly if histories that
share a window share a belief, so the largest distance between two such beliefs measures what is missing.
Two readings are chosen here. Only histories of positive probability count, as others have no belief. And the
decoder may depend on h, as everything in the paper's proofs does, though its definition writes p* without an
index: `one_decoder` asks for that stricter property.
"""

import numpy as np
from scipy.spatial.distance import pdist

from mulv.tabular.pomdp import POMDP
from mulv.tabular.windows import Histories, enumerate_histories

DECODABLE = 1e-8  # gaps below are those of rounding


def decodability_gap(histories: Histories, *, one_decoder: bool = False) -> float:
    """max ‖b(τ_h) − b(τ'_h)‖₁ over reachable histories that share a window: 0 if L-decodable, at most 2."""
    groups: dict[object, list[np.ndarray]] = {}
    for h, layer in enumerate(histories.layers):
        for place, belief in zip(layer.window, layer.belief, strict=True):
            window = layer.windows[place]
            groups.setdefault(window if one_decoder else (h, window), []).append(belief)
    return max((_diameter(np.array(beliefs)) for beliefs in groups.values()), default=0.0)


def is_decodable(pomdp: POMDP, length: int, horizon: int, *, one_decoder: bool = False) -> bool:
    """Is it L-decodable with L = `length`, over `horizon` decisions?"""
    histories = enumerate_histories(pomdp, length, horizon)
    return decodability_gap(histories, one_decoder=one_decoder) <= DECODABLE


def smallest_window(pomdp: POMDP, horizon: int, bound: int, *, one_decoder: bool = False) -> int | None:
    """The smallest L ≤ `bound` for which it is L-decodable over `horizon` decisions, or None.

    A window as long as the horizon is the whole history: with a decoder for each h it always decodes.
    """
    lengths = range(1, bound + 1)
    return next((n for n in lengths if is_decodable(pomdp, n, horizon, one_decoder=one_decoder)), None)


def _diameter(points: np.ndarray) -> float:
    """The largest L1 distance between two of them."""
    distinct = np.unique(points, axis=0)
    return float(pdist(distinct, "cityblock").max()) if len(distinct) > 1 else 0.0
