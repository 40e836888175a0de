"""Is Q^π linear in p(· | x_h, a_h)? Exact values, k-step backups, and what is left of them after projection.

The k-step backup of (τ_h, a_h) acts by ν^{π,h+L} at h+1, …, h+k−1 and by π from h+k on:

    B_k(τ_h, a_h) = r_h + E_ν[Σ_{i=1}^{k−1} γ^i r_{h+i} + γ^k V^π_{h+k}].

For k = 1 nothing is left to ν and B_1 = Q^π; for k = L the window x_{h+L} holds nothing older than o_{h+1}.
The paper's claim, Q^π_h(x_h, a_h) = ⟨p(· | x_h, a_h), w^π⟩ in an L-decodable POMDP, is exact for B_L, with
the latent z = s_{h+1}. Its r_h is one more feature ("feature augmentation") and is left out here.

B_L and Q^π have the same mean under d^π, which is what moment matching gives and the paper's proofs use. They
are not the same function of (x_h, a_h) for every L-step policy, as ν acts alike after windows that π tells
apart. Q^π itself is linear if beliefs are Dirac and π reads nothing else, π(a | s_h): then already for k = 1.
"""

from typing import NamedTuple

import numpy as np

from mulv.tabular.measure import Measure, after_each, latents, push
from mulv.tabular.moment_matching import moment_matching_policy
from mulv.tabular.pomdp import POMDP
from mulv.tabular.windows import Histories, Policy, decode


class StateValues(NamedTuple):
    """The value of a history when the state is s_h; its mean under b(τ_h) is the agent's own."""

    v: list[np.ndarray]  # a step: (histories, S)
    q: list[np.ndarray]  # a step: (histories, S, A)


class Projection(NamedTuple):
    """The best weights, and the largest error they leave, in units of the largest target (or of one)."""

    weights: np.ndarray
    residual: float


def state_values(histories: Histories, policy: Policy) -> StateValues:
    """Exact dynamic programming, backwards over the steps."""
    pomdp = histories.pomdp
    following, v, q = np.zeros((1, pomdp.states)), [], []
    for layer, pi in zip(reversed(histories.layers), reversed(policy), strict=True):
        action_values = np.empty((len(layer.window), pomdp.states, pomdp.actions))
        for a, (transition, emission) in enumerate(zip(pomdp.transition, pomdp.observation, strict=True)):
            place = layer.next_history[:, a]
            later = np.where((place >= 0)[:, :, None], following[place], 0.0)  # (histories, O, S')
            arrived = np.einsum("so,nos->ns", emission.toarray(), later)
            action_values[:, :, a] = pomdp.reward[a] + pomdp.discount * (transition @ arrived.T).T
        q.append(action_values)
        v.append(np.einsum("nsa,na->ns", action_values, pi))
        following = v[-1]
    return StateValues(v[::-1], q[::-1])


def history_values(histories: Histories, policy: Policy) -> list[np.ndarray]:
    """Q^π_h(τ_h, a_h): a step, (histories, A)."""
    q = state_values(histories, policy).q
    return [
        np.einsum("ns,nsa->na", layer.belief, own) for layer, own in zip(histories.layers, q, strict=True)
    ]


def window_value_gap(histories: Histories, policy: Policy) -> float:
    """max |Q^π(τ_h, a) − Q^π(τ'_h, a)| over histories that share a window: 0 if Q^π is a function of x_h."""
    gap = 0.0
    for layer, q in zip(histories.layers, history_values(histories, policy), strict=True):
        highest = np.full((len(layer.windows), q.shape[1]), -np.inf)
        lowest = -highest
        np.maximum.at(highest, layer.window, q)
        np.minimum.at(lowest, layer.window, q)
        gap = max(gap, float(np.max(highest - lowest)))
    return gap


def latent_features(histories: Histories, policy: Policy, h: int) -> np.ndarray:
    """p(z | x_h, a_h) of every (τ_h, a_h) in turn, (histories · A, Z), from the window's own belief.

    z is s_{h+1}; where emissions depend on the action, o_{h+1} also needs a_h, and z is (a_h, s_{h+1}).
    """
    pomdp, layer = histories.pomdp, histories.layers[h]
    belief = decode(histories, policy)[h][layer.window]
    predicted = np.stack([belief @ t for t in pomdp.transition], axis=1)  # (histories, A, S)
    if emission_depends_on_action(pomdp):
        predicted = np.einsum("nas,ab->nabs", predicted, np.eye(pomdp.actions))
    return predicted.reshape(len(belief) * pomdp.actions, -1)


def emission_depends_on_action(pomdp: POMDP) -> bool:
    """Whether it has O(o | s', a) instead of the paper's O(o | s')."""
    first, *rest = pomdp.observation
    return any((first != other).nnz for other in rest)


def backup(
    histories: Histories, policy: Policy, h: int, steps: int, values: StateValues | None = None
) -> np.ndarray:
    """B_k − r_h of every (τ_h, a_h) in turn, (histories · A,), for k = `steps`, by following each of them.

    `values` are those of the policy, if the caller has them already.
    """
    pomdp = histories.pomdp
    origins = len(histories.layers[h].window) * pomdp.actions
    total = np.zeros(origins)
    if h + 1 == histories.horizon:
        return total
    last = min(h + steps, histories.horizon)  # V_H = 0
    followed = latents(histories, policy, "states")
    measure = after_each(histories, h, followed)
    for step, nu in enumerate(moment_matching_policy(histories, policy, h + 1, last, followed), h + 1):
        acts = nu(measure)
        reward = np.sum(acts * pomdp.reward.T[measure.state], axis=1)
        total += pomdp.discount ** (step - h) * _mean(measure, reward, origins)
        if step + 1 == histories.horizon:
            return total
        measure = push(histories, step, measure, acts, followed)
    v = (values or state_values(histories, policy)).v[last][measure.history, measure.state]
    return total + pomdp.discount ** (last - h) * _mean(measure, v, origins)


def project(features: np.ndarray, target: np.ndarray) -> Projection:
    """Least squares of `target` on the columns of `features`."""
    weights = np.linalg.lstsq(features, target, rcond=None)[0]
    left = np.max(np.abs(target - features @ weights))
    return Projection(weights, float(left / max(1.0, np.max(np.abs(target)))))


def backup_residual(histories: Histories, policy: Policy, steps: int) -> float:
    """The largest residual over h of B_k after projection on p(· | x_h, a_h), for k = `steps`."""
    values = state_values(histories, policy)
    return max(
        project(latent_features(histories, policy, h), backup(histories, policy, h, steps, values)).residual
        for h in range(histories.horizon)
    )


def linear_q_residual(histories: Histories, policy: Policy) -> float:
    """The residual of the L-step backup: 0 in an L-decodable POMDP, for every L-step policy."""
    return backup_residual(histories, policy, histories.length)


def _mean(measure: Measure, values: np.ndarray, origins: int) -> np.ndarray:
    """The mean of a row's value given each origin."""
    return np.bincount(measure.origin, weights=measure.weight * values, minlength=origins)
