"""Eq. decomposition: P^π(x_{h+L} | x_h, a_h) = ∫ p(z | x_h, a_h) P^{ν_π}(x_{h+L} | z) dz.

The left side is read with π̃^{h+L}, which acts by ν from h+1 on: then it is exact in an L-decodable POMDP, for
each (x_h, a_h). With π itself on the left it holds in the mean under d^π only. One factor, p, is that of the
POMDP; the other changes with the policy.
"""

import numpy as np

from mulv.tabular.linear_q import emission_depends_on_action, latent_features
from mulv.tabular.measure import Measure, after_each, latents, push
from mulv.tabular.moment_matching import moment_matching_policy
from mulv.tabular.windows import Histories, Policy, history_occupancy


def window_kernel(histories: Histories, policy: Policy, h: int, *, matched: bool) -> np.ndarray:
    """P(x_{h+L} | τ_h, a_h), (histories · A, windows of h+L), by following each (τ_h, a_h).

    Between, actions are those of ν if `matched`, or of π. The step h+L must be one of the histories'.
    """
    measure = after_each(histories, h, latents(histories, policy, "states"))
    origins = len(histories.layers[h].window) * histories.pomdp.actions
    return _arrivals(histories, policy, h, measure, origins, matched=matched)


def policy_factor(histories: Histories, policy: Policy, h: int) -> np.ndarray:
    """P^{ν_π}(x_{h+L} | z), (Z, windows of h+L), by running ν_π on the histories π comes with, given z."""
    pomdp = histories.pomdp
    measure = after_each(histories, h, latents(histories, policy, "states"))
    history, action = np.divmod(measure.origin, pomdp.actions)
    weight = measure.weight * (history_occupancy(histories, policy)[h][:, None] * policy[h])[history, action]
    by_action = emission_depends_on_action(pomdp)
    z = action * pomdp.states + measure.state if by_action else measure.state
    size = pomdp.states * (pomdp.actions if by_action else 1)
    total = np.bincount(z, weight, minlength=size)[z]
    given = Measure(weight / total, measure.state, measure.history, measure.path, z)
    return _arrivals(histories, policy, h, given, size, matched=True)


def decomposition_error(histories: Histories, policy: Policy, h: int, *, matched: bool = True) -> float:
    """The largest L1 distance, over (τ_h, a_h), between the two sides."""
    return float(np.max(np.abs(_difference(histories, policy, h, matched=matched)).sum(axis=1)))


def mean_decomposition_error(histories: Histories, policy: Policy, h: int) -> float:
    """The L1 distance between the two sides' means under d^π, with π itself on the left."""
    d = history_occupancy(histories, policy)[h][:, None] * policy[h]
    return float(np.abs(d.reshape(-1) @ _difference(histories, policy, h, matched=False)).sum())


def _difference(histories: Histories, policy: Policy, h: int, *, matched: bool) -> np.ndarray:
    left = window_kernel(histories, policy, h, matched=matched)
    return left - latent_features(histories, policy, h) @ policy_factor(histories, policy, h)


def _arrivals(
    histories: Histories, policy: Policy, h: int, measure: Measure, origins: int, *, matched: bool
) -> np.ndarray:
    """Where each origin's rows are L−1 steps on: (origins, windows of h+L)."""
    last = h + histories.length
    followed = latents(histories, policy, "states")
    for step, nu in enumerate(moment_matching_policy(histories, policy, h + 1, last, followed), h + 1):
        acts = nu(measure) if matched else policy[step][measure.history]
        measure = push(histories, step, measure, acts, followed)
    layer = histories.layers[last]
    arrivals = np.zeros((origins, len(layer.windows)))
    np.add.at(arrivals, (measure.origin, layer.window[measure.history]), measure.weight)
    return arrivals
