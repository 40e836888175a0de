"""γ-observability: how far an observation tells two beliefs apart, at the worst.

γ is the largest number with ‖⟨O, b⟩ − ⟨O, b'⟩‖₁ ≥ γ ‖b − b'‖₁ for all beliefs b, b'. Only the direction
d = b − b' matters: any d ≠ 0 with Σ_s d(s) = 0 is, up to its scale, the difference of two beliefs with no
state in common, d⁺ and d⁻, and then ‖d‖₁ = 2. So

    γ = ½ min ‖Oᵀ(p − q)‖₁   over p, q ∈ Δ(S) with disjoint supports.

Without disjointness p = q would give 0: the minimum is over a union of polytopes, one for each split of the
states into a side where p may lie and one where q may. For a given split it is a linear program,

    min ½ Σ_o t_o   with   −t ≤ Oᵀ(p − q) ≤ t,   Σp = Σq = 1,   p, q ≥ 0,   p = 0 here, q = 0 there,

and a binary σ_s (p_s ≤ σ_s, q_s ≤ 1 − σ_s) lets HiGHS search the splits by branch and bound, a linear program
at each node. Its binaries are integral to a tolerance only, so the split it finds is solved once more as a
plain linear program. Three things are known without a search:

- γ > 0 exactly if O has rank |S|: as O1 = 1, Oᵀd = 0 already implies Σ_s d(s) = 0.
- Observations whose likelihoods are proportional tell the same, and count as one.
- If O is then square, y = Oᵀd is any vector of sum zero. ‖O⁻ᵀy‖₁ is convex, so among those of norm 2 it is
  largest at a corner, y = e_i − e_j: γ = min 2 / ‖O⁻ᵀ(e_i − e_j)‖₁ over pairs of observations.
"""

from typing import NamedTuple

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csr_array
from scipy.spatial.distance import cdist

from mulv.core.errors import MulvError
from mulv.tabular.pomdp import POMDP

SECONDS = 60.0  # a search over the splits of many states may not end: there are 2^(|S|−1) of them


class Observability(NamedTuple):
    """γ, and the two beliefs that an observation tells apart no better than that."""

    gamma: float
    p: np.ndarray
    q: np.ndarray


def observability(pomdp: POMDP) -> Observability:
    """The γ of a POMDP. The paper's emission is O(o|s); if it depends on the action, the worst one counts."""
    if pomdp.states == 1:
        raise MulvError("γ compares different beliefs, and a POMDP of one state has but one")
    return min((emission_observability(o) for o in pomdp.observation), key=lambda found: found.gamma)


def emission_observability(emission: csr_array) -> Observability:
    """γ of one emission matrix (S, O) with at least two states."""
    matrix = merge_proportional(emission.toarray())
    states, observations = matrix.shape
    if np.linalg.matrix_rank(matrix) < states:
        return _between(np.linalg.svd(matrix.T)[2][-1], 0.0)  # Oᵀd = 0
    return search_corners(matrix) if states == observations else search_splits(matrix)


def merge_proportional(matrix: np.ndarray) -> np.ndarray:
    """Observations with proportional likelihoods as one; those that never occur are gone."""
    matrix = matrix[:, matrix.any(axis=0)]
    shapes = np.round(matrix / matrix.sum(axis=0), 12)
    groups = np.unique(shapes, axis=1, return_inverse=True)[1].reshape(-1)
    return np.asarray(matrix @ np.eye(groups.max() + 1)[groups])


def search_corners(matrix: np.ndarray) -> Observability:
    """γ of an invertible emission matrix, in closed form."""
    inverse = np.linalg.inv(matrix.T)
    distance = cdist(inverse.T, inverse.T, "cityblock")
    i, j = np.unravel_index(np.argmax(distance), distance.shape)
    return _between(inverse[:, i] - inverse[:, j], float(2 / distance[i, j]))


def search_splits(matrix: np.ndarray) -> Observability:
    """γ of an emission matrix by linear programs over the splits of the states."""
    states = len(matrix)
    # State 0 is on p's side: p and q may swap.
    split = _minimise(matrix, np.eye(states)[0], np.ones(states), integral=True)[-states:] > 0.5
    solution = _minimise(matrix, split, split, integral=False)
    d = solution[:states] - solution[states : 2 * states]
    return _between(d, float(np.abs(d @ matrix).sum() / np.abs(d).sum()))


def _between(d: np.ndarray, gamma: float) -> Observability:
    """The two beliefs with no state in common whose difference is d, up to its scale."""
    p, q = np.maximum(d, 0), np.maximum(-d, 0)
    return Observability(gamma, p / p.sum(), q / q.sum())


def _minimise(matrix: np.ndarray, lower: np.ndarray, upper: np.ndarray, *, integral: bool) -> np.ndarray:
    """The program above in the variables (p, q, t, σ), with lower ≤ σ ≤ upper."""
    states, observations = matrix.shape
    one, distance = np.eye(states), np.eye(observations)
    none, aside, below = np.zeros((states,) * 2), np.zeros((states, observations)), np.zeros(matrix.T.shape)
    row, gap = np.ones((1, states)), np.zeros((1, observations))
    at_most = np.block(
        [
            [matrix.T, -matrix.T, -distance, below],  # Oᵀ(p − q) − t ≤ 0
            [-matrix.T, matrix.T, -distance, below],
            [one, none, aside, -one],  # p − σ ≤ 0
            [none, one, aside, one],  # q + σ ≤ 1
        ]
    )
    bound = np.concatenate([np.zeros(2 * observations + states), np.ones(states)])
    sums = np.block([[row, 0 * row, gap, 0 * row], [0 * row, row, gap, 0 * row]])
    free = np.concatenate([np.full(2 * states, 1.0), np.full(observations, np.inf)])
    found = milp(
        np.concatenate([np.zeros(2 * states), np.full(observations, 0.5), np.zeros(states)]),
        constraints=[LinearConstraint(at_most, ub=bound), LinearConstraint(sums, lb=1, ub=1)],
        bounds=Bounds(np.concatenate([np.zeros(free.size), lower]), np.concatenate([free, upper])),
        integrality=np.concatenate([np.zeros(free.size), np.full(states, float(integral))]),
        options={"mip_rel_gap": 0.0, "time_limit": SECONDS},
    )
    if not found.success:
        raise MulvError(f"γ of {states} states was not found: {found.message}")
    return np.asarray(found.x)
