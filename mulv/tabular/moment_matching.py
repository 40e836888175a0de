"""The moment matching policy ν^{π,h}: it forgets what is older than L steps, and no window x_h tells.

Definition (Moment Matching Policy): for h' = h−L+1, …, h−1

    ν^{π,h}_{h'}(a | s_{h−L+1:h'}, o_{h−L+1:h'}, a_{h−L+1:h'−1}) = E_π[π_{h'}(a | x_{h'}) | the same],

and ν_h = π_h; π̃^h acts by π before step h−L+1 and by ν^{π,h} from there. The claim (Lemma B.2 of Efroni et
al.) is d^π(x_h, a_h) = d^{π̃^h}(x_h, a_h) for every L-step policy π.

The latent that ν is told has two readings:

- `states`: the hidden states, as the definition is written. d^π(x_h) = d^{π̃^h}(x_h) is then the chain rule,
  and the claim holds for L-step policies in *every* POMDP; decodability matters only in that a policy of
  beliefs, π: B → Δ(A), is an L-step policy where windows decode, and elsewhere is not. No agent could execute
  this ν.
- `decoded`: the beliefs that windows decode to, which an agent has; the same thing if they are Dirac. For
  policies of beliefs the claim then rests on b(τ_{h'}) = p*(x_{h'}): with L-decodability it holds.
"""

from dataclasses import dataclass

import numpy as np

from mulv.tabular.measure import Latent, Latents, Measure, at_step, latents, push
from mulv.tabular.windows import Histories, Policy, history_occupancy, window_suffixes


@dataclass(frozen=True, eq=False)
class MatchedStep:
    """ν_{h'}: a table over what it is told, the latents and the part of the window since its first step.

    Told something that has probability zero under π, where the definition says nothing, it acts uniformly.
    """

    suffix: np.ndarray  # (histories,): which part of the window each history has
    suffixes: int
    known: np.ndarray  # sorted keys
    table: np.ndarray  # (keys, A)

    def __call__(self, measure: Measure) -> np.ndarray:
        """(rows, A): the probability of each action given each row."""
        key = _key(measure, self.suffix, self.suffixes)
        place = np.minimum(np.searchsorted(self.known, key), len(self.known) - 1)
        met = self.known[place] == key
        return np.where(met[:, None], self.table[place], 1 / self.table.shape[1])


def moment_matching_policy(
    histories: Histories, policy: Policy, first: int, last: int, followed: Latents
) -> list[MatchedStep]:
    """ν_{first}, …, ν_{last−1}: each the mean of π over the histories that agree since step `first`."""
    measure = at_step(histories, history_occupancy(histories, policy)[first], first, followed)
    steps = []
    for h in range(first, last):
        suffix, suffixes = window_suffixes(histories.layers[h], h - first + 1)
        acts = policy[h][measure.history]
        known, place = np.unique(_key(measure, suffix, suffixes), return_inverse=True)
        table = np.zeros((len(known), acts.shape[1]))
        np.add.at(table, place, measure.weight[:, None] * acts)
        steps.append(MatchedStep(suffix, suffixes, known, table / table.sum(axis=1, keepdims=True)))
        if h + 1 < last:
            measure = push(histories, h, measure, acts, followed)
    return steps


def moment_matching_error(
    histories: Histories, policy: Policy, h: int, *, latent: Latent = "states", length: int | None = None
) -> float:
    """‖d^π(x_h, a_h) − d^{π̃^h}(x_h, a_h)‖₁, the second by running π̃^h.

    `length` is L if it is not the histories' own: a policy may read more than the L steps that ν keeps.
    """
    length = length or histories.length
    first = max(0, h - length + 1)
    followed = latents(histories, policy, latent)
    occupancy = history_occupancy(histories, policy)
    measure = at_step(histories, occupancy[first], first, followed)
    for step, nu in enumerate(moment_matching_policy(histories, policy, first, h, followed), first):
        measure = push(histories, step, measure, nu(measure), followed)
    by_nu = np.bincount(measure.history, measure.weight, minlength=len(occupancy[h]))
    suffix, suffixes = window_suffixes(histories.layers[h], length)
    difference = np.zeros((suffixes, histories.pomdp.actions))
    np.add.at(difference, suffix, (occupancy[h] - by_nu)[:, None] * policy[h])
    return float(np.abs(difference).sum())


def _key(measure: Measure, suffix: np.ndarray, suffixes: int) -> np.ndarray:
    """What ν is told, as one number a row."""
    return measure.path * suffixes + suffix[measure.history]
