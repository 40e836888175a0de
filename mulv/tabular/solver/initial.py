"""The bounds a search starts from. Each iterate is a bound itself, so that stopping early is sound."""

from collections.abc import Callable

import numpy as np
from scipy.sparse import csr_array, hstack

from mulv.tabular.pomdp import POMDP

TOLERANCE = 1e-6  # of the largest value: how close iterations come to their limit
SWEEPS = 2000  # and how many there are at most


def floor(pomdp: POMDP) -> float:
    """No policy has less, from any state."""
    return float(pomdp.reward.min()) / (1 - pomdp.discount)


def blind_values(pomdp: POMDP) -> np.ndarray:
    """(A, S), from below: the value of taking one action for ever."""
    values = np.full(pomdp.reward.shape, floor(pomdp))

    def sweep(values: np.ndarray) -> np.ndarray:
        after = np.stack([t @ v for t, v in zip(pomdp.transition, values, strict=True)])
        return np.maximum(values, pomdp.reward + pomdp.discount * after)

    return _iterate(sweep, values, pomdp.discount)


def mdp_values(pomdp: POMDP) -> np.ndarray:
    """(A, S), from above: Q of an agent that sees the state."""
    ceiling = float(pomdp.reward.max()) / (1 - pomdp.discount)

    def sweep(values: np.ndarray) -> np.ndarray:
        best = values.max(axis=0)
        after = np.stack([t @ best for t in pomdp.transition])
        return np.minimum(values, pomdp.reward + pomdp.discount * after)

    return _iterate(sweep, np.full(pomdp.reward.shape, ceiling), pomdp.discount)


def informed_values(pomdp: POMDP) -> np.ndarray:
    """(A, S), from above: the fast informed bound (Hauskrecht, 2000), max_a Σ_s b(s) Q(a, s).

    Q(a, s) = r(a, s) + γ Σ_o max_a' Σ_s' P(s', o | s, a) Q(a', s'): as if the state were seen a step later.
    """
    joints = [_joint(pomdp, a) for a in range(pomdp.actions)]

    def sweep(values: np.ndarray) -> np.ndarray:
        after = []
        for joint in joints:
            each = (joint @ values.T).reshape(-1, pomdp.states, pomdp.actions)  # o, s, a'
            after.append(each.max(axis=2).sum(axis=0))
        return np.minimum(values, pomdp.reward + pomdp.discount * np.stack(after))

    return _iterate(sweep, mdp_values(pomdp), pomdp.discount)


def _joint(pomdp: POMDP, a: int) -> csr_array:
    """(O·S, S'): P(s', o | s, a), for the observations that action a can show."""
    seen = pomdp.observation[a].tocsc()
    shown = np.flatnonzero(np.diff(seen.indptr))
    arrive = pomdp.transition[a].T.tocsr()
    blocks = [arrive * seen[:, [o]].toarray() for o in shown]  # (S', S) each
    return csr_array(hstack(blocks, format="csr").T.tocsr())


def _iterate(sweep: Callable[[np.ndarray], np.ndarray], values: np.ndarray, discount: float) -> np.ndarray:
    for _ in range(SWEEPS):
        values, last = sweep(values), values
        if np.abs(values - last).max() <= TOLERANCE * (1 - discount) * np.abs(values).max():
            break
    return values
