"""A POMDP seen through windows, as arrays of one shape for every step: what compiled learners run on.

Windows, histories and outcomes are numbered anew at each step and filled up to the widest one. An outcome of
step h is an observation o_{h+1} that can occur there.

A learned model may believe in a window that no episode can show. All such windows of a step that end in one
outcome share a row after the real windows, a strange window: it is never visited, and leads to strange ones.
"""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from mulv.tabular.policies import uniform_policy
from mulv.tabular.precision import in_float64
from mulv.tabular.windows import Histories, decode


class WindowTables(eqx.Module):
    """The true process over histories, and what a learner is told: windows, and rewards, as in the paper."""

    length: int = eqx.field(static=True)  # L
    discount: float = eqx.field(static=True)
    # The truth: only simulation and exact evaluation look here.
    first: Float[Array, "history"]
    probability: Float[Array, "time history act obs"]  # P(o_{h+1} | τ_h, a_h)
    next_history: Int[Array, "time history act obs"]
    history_reward: Float[Array, "time history act"]
    window: Int[Array, "time history"]
    # What a learner knows before it begins.
    possible: Bool[Array, "time obs"]  # whether the step has so many outcomes
    next_window: Int[Array, "time window act obs"]
    reward: Float[Array, "time window act"]  # E[r_h | x_h, a_h]

    @property
    def horizon(self) -> int:
        """H."""
        return self.reward.shape[0]

    @property
    def actions(self) -> int:
        """|A|."""
        return self.reward.shape[2]

    @property
    def windows(self) -> int:
        """Rows for windows, strange ones included."""
        return self.reward.shape[1]


@in_float64
def window_tables(histories: Histories) -> WindowTables:
    """The arrays of `histories`; a window's reward is that of its mean belief when acting uniformly."""
    pomdp, layers = histories.pomdp, histories.layers
    outcomes = [np.flatnonzero(layer.probability.sum(axis=(0, 1)) > 0) for layer in layers]
    steps, actions, width = len(layers), pomdp.actions, max(map(len, outcomes))
    most = max(len(layer.window) for layer in layers)
    real = max(len(layer.windows) for layer in layers)
    probability = np.zeros((steps, most, actions, width))
    next_history = np.zeros(probability.shape, np.int32)
    history_reward = np.zeros((steps, most, actions))
    window = np.zeros((steps, most), np.int32)
    possible = np.arange(width) < np.array([[len(each)] for each in outcomes])
    next_window = np.broadcast_to(real + np.arange(width), (steps, real + width, actions, width)).copy()
    reward = np.zeros((steps, real + width, actions))
    decoded = decode(histories, uniform_policy(histories))
    for h, (layer, seen) in enumerate(zip(layers, outcomes, strict=True)):
        n = len(layer.window)
        probability[h, :n, :, : len(seen)] = layer.probability[:, :, seen]
        history_reward[h, :n] = layer.belief @ pomdp.reward.T
        window[h, :n] = layer.window
        reward[h, : len(layer.windows)] = decoded[h] @ pomdp.reward.T
        if h > 0:
            last = np.array([x[-1] for x in layer.windows])
            for place, shown in enumerate(outcomes[h - 1]):
                reward[h, real + place] = reward[h, : len(layer.windows)][last == shown].mean(axis=0)
        if h + 1 < steps:
            following = layer.next_history[:, :, seen]
            next_history[h, :n, :, : len(seen)] = np.maximum(following, 0)
            before, a, o = np.nonzero(following >= 0)
            next_window[h, layer.window[before], a, o] = layers[h + 1].window[following[before, a, o]]
    return WindowTables(
        length=histories.length,
        discount=pomdp.discount,
        first=jnp.asarray(np.pad(histories.first, (0, most - len(histories.first)))),
        probability=jnp.asarray(probability),
        next_history=jnp.asarray(next_history),
        history_reward=jnp.asarray(history_reward),
        window=jnp.asarray(window),
        possible=jnp.asarray(possible),
        next_window=jnp.asarray(next_window, jnp.int32),
        reward=jnp.asarray(reward),
    )
