"""Exact distributions over what an agent and its latent state went through, pushed a step at a time."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.sparse import csr_array

from mulv.tabular.windows import Histories, Policy, decode, distinct

Latent = Literal["states", "decoded"]


@dataclass(frozen=True, eq=False)
class Measure:
    """Rows of a weight and where it lies.

    `path` is one number for the sequence of latents since some step; `origin` says which condition a row
    belongs to, so that many conditional distributions travel together.
    """

    weight: np.ndarray
    state: np.ndarray
    history: np.ndarray
    path: np.ndarray
    origin: np.ndarray


@dataclass(frozen=True, eq=False)
class Latents:
    """What paths are made of: the states themselves, or the beliefs P^π(s_h | x_h) that windows decode to."""

    decoded: list[np.ndarray] | None  # a step, (histories,): which belief its window decodes to
    base: int  # more than there are latents of any step

    def extend(self, path: np.ndarray, h: int, state: np.ndarray, history: np.ndarray) -> np.ndarray:
        """Append the latent of step h to each path."""
        return path * self.base + (state if self.decoded is None else self.decoded[h][history])


def latents(histories: Histories, policy: Policy, kind: Latent) -> Latents:
    """The latents of this kind."""
    if kind == "states":
        return Latents(None, histories.pomdp.states)
    classes = [distinct(beliefs) for beliefs in decode(histories, policy)]
    decoded = [group[layer.window] for group, layer in zip(classes, histories.layers, strict=True)]
    return Latents(decoded, max(int(group.max()) + 1 for group in classes))


def at_step(histories: Histories, occupancy: np.ndarray, h: int, followed: Latents) -> Measure:
    """d(τ_h) b(s_h|τ_h) as rows whose paths begin here."""
    joint = occupancy[:, None] * histories.layers[h].belief
    history, state = np.nonzero(joint)
    empty = np.zeros(len(state), dtype=np.int64)
    return Measure(joint[history, state], state, history, followed.extend(empty, h, state, history), empty)


def after_each(histories: Histories, h: int, followed: Latents) -> Measure:
    """The distribution of step h+1 given each (τ_h, a_h), which is its origin: history · A + action."""
    layer, actions = histories.layers[h], histories.pomdp.actions
    history, state = np.nonzero(layer.belief)
    action = np.tile(np.arange(actions), len(state))
    history, state = np.repeat(history, actions), np.repeat(state, actions)
    empty = np.zeros(len(state), dtype=np.int64)
    start = Measure(layer.belief[history, state], state, history, empty, history * actions + action)
    return push(histories, h, start, np.eye(actions)[action], followed)


def push(histories: Histories, h: int, measure: Measure, action: np.ndarray, followed: Latents) -> Measure:
    """From step h to h+1, where `action` (rows, A) is the probability of each action given each row."""
    pomdp, next_history = histories.pomdp, histories.layers[h].next_history
    parts = []
    for a, (transition, emission) in enumerate(zip(pomdp.transition, pomdp.observation, strict=True)):
        chosen = np.flatnonzero(action[:, a] * measure.weight)
        moved, state, p = _expand(transition, measure.state[chosen])
        shown, o, q = _expand(emission, state)
        row = chosen[moved[shown]]
        weight = measure.weight[row] * action[row, a] * p[shown] * q
        history = next_history[measure.history[row], a, o]
        parts.append((weight, state[shown], history, measure.path[row], measure.origin[row]))
    weight, state, history, path, origin = map(np.concatenate, zip(*parts, strict=True))
    path = followed.extend(path, h + 1, state, history)
    return _merge(Measure(weight, state, history, path, origin))


def _expand(kernel: csr_array, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """All nonzero entries of the given rows: which of them, column, probability."""
    entries = kernel[rows]
    return np.repeat(np.arange(len(rows)), np.diff(entries.indptr)), entries.indices, entries.data


def _merge(measure: Measure) -> Measure:
    """Rows that lie in one place are one."""
    place = np.stack([measure.state, measure.history, measure.path, measure.origin])
    order = np.lexsort(place)
    place = place[:, order]
    first = np.flatnonzero(np.r_[True, np.any(place[:, 1:] != place[:, :-1], axis=0)])
    return Measure(np.add.reduceat(measure.weight[order], first), *place[:, first])
