"""Policies for the claims to be tried on; every action keeps some probability."""

import numpy as np

from mulv.tabular.windows import Histories, Policy, distinct


def uniform_policy(histories: Histories) -> Policy:
    """Every action alike."""
    actions = histories.pomdp.actions
    return [np.full((len(layer.window), actions), 1 / actions) for layer in histories.layers]


def window_policy(histories: Histories, rng: np.random.Generator) -> Policy:
    """An L-step policy π_h(a | x_h), drawn anew for each window."""
    actions = histories.pomdp.actions
    return [_positive(rng, len(layer.windows), actions)[layer.window] for layer in histories.layers]


def belief_policy(histories: Histories, rng: np.random.Generator) -> Policy:
    """π_h: B → Δ(A), as the paper's belief MDP has it, drawn anew for each belief.

    With L-decodability it is an L-step policy. Without, it reads more of the history than the window holds.
    """
    groups = (distinct(layer.belief) for layer in histories.layers)
    return [_positive(rng, int(group.max()) + 1, histories.pomdp.actions)[group] for group in groups]


def _positive(rng: np.random.Generator, rows: int, actions: int) -> np.ndarray:
    """Distributions over the actions, no probability below a tenth of the uniform one."""
    return 0.9 * rng.dirichlet(np.full(actions, 0.5), size=rows) + 0.1 / actions
