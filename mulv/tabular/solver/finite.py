"""The optimal value over finitely many decisions, exactly: dynamic programming over reachable beliefs."""

import numpy as np

from mulv.tabular.pomdp import POMDP
from mulv.tabular.windows import enumerate_histories


def finite_value(pomdp: POMDP, horizon: int) -> tuple[float, int]:
    """max E Σ_{h < horizon} γ^h r_h, and how many beliefs it took. Too many of them are an error."""
    histories = enumerate_histories(pomdp, 1, horizon)  # a window beside the belief does no harm
    value = np.zeros(0)  # of the step after the last decision: next_history points at none of it
    for layer in reversed(histories.layers):
        q = layer.belief @ pomdp.reward.T
        if value.size:
            after = np.where(layer.next_history >= 0, value[layer.next_history], 0.0)
            q += pomdp.discount * np.sum(layer.probability * after, axis=2)
        value = q.max(axis=1)
    return float(histories.first @ value), sum(len(layer.window) for layer in histories.layers)
