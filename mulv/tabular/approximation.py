"""Theorem obs_approx: a γ-observable POMDP is nearly L-decodable, for L large enough.

    E_π ‖P(o_{h+1} | τ_h, a_h) − P^M(o_{h+1} | x_h, a_h)‖₁ ≤ ε

for some L-step decodable M with L = Õ(γ⁻⁴ log(d/ε)). M must not depend on π. It is built as the cited proofs
do: the belief of M is that of a filter which knows nothing, a uniform state, L steps ago, and then reads the
window. At the start of an episode, where the window is the whole history, it is exact. `prior="policy"` asks
instead what windows can tell at the best, when the model may know how often π brings each history into each
window.
"""

import functools
from typing import Literal

import numpy as np

from mulv.tabular.belief import initial, update
from mulv.tabular.pomdp import POMDP
from mulv.tabular.windows import NO_OBSERVATION, Histories, Policy, WindowKey, decode, history_occupancy

Prior = Literal["uniform", "policy"]


def approximation_errors(histories: Histories, policy: Policy, prior: Prior = "uniform") -> np.ndarray:
    """(H,): the expected L1 distance of the L-step model's next observation from the true one, a step."""
    pomdp = histories.pomdp
    if prior == "policy":
        models = decode(histories, policy)
    else:
        models = [
            model_beliefs(pomdp, layer.windows, whole=h < histories.length)
            for h, layer in enumerate(histories.layers)
        ]
    errors = []
    occupancies = history_occupancy(histories, policy)
    for layer, pi, model, d in zip(histories.layers, policy, models, occupancies, strict=True):
        kernels = zip(pomdp.transition, pomdp.observation, strict=True)
        told = np.stack([model @ t @ o for t, o in kernels], axis=1)  # (windows, A, O)
        distance = np.abs(layer.probability - told[layer.window]).sum(axis=2)
        errors.append(float(np.sum(d[:, None] * pi * distance)))
    return np.array(errors)


def sufficient_window(gamma: float, states: int, epsilon: float) -> float:
    """γ⁻⁴ log(|S|/ε), the theorem's L up to the constants and logarithms that Õ hides; infinite for γ = 0."""
    return float("inf") if gamma == 0 else gamma**-4 * float(np.log(states / epsilon))


def model_beliefs(pomdp: POMDP, windows: tuple[WindowKey, ...], *, whole: bool) -> np.ndarray:
    """(windows, S): the belief after each window, from ρ0 if it is the `whole` history, else from U(S)."""

    @functools.cache  # many windows begin alike
    def filtered(window: WindowKey) -> np.ndarray:
        if len(window) == 1:
            return _first_belief(pomdp, window[0], whole)
        *before, a, o = window
        return update(pomdp, filtered(tuple(before)), a, o)

    return np.array([filtered(window) for window in windows])


def _first_belief(pomdp: POMDP, o: int, whole: bool) -> np.ndarray:
    """The belief after a window's first observation.

    The action that led to it is not in the window; where emissions depend on it, any is as likely.
    """
    if whole:
        return initial(pomdp, None if o == NO_OBSERVATION else o)
    likelihood = np.mean([emission[:, [o]].toarray()[:, 0] for emission in pomdp.observation], axis=0)
    return likelihood / likelihood.sum()
