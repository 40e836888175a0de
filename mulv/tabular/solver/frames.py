"""Sets of states that hold the support of every reachable belief, and what follows a belief of each.

What an agent sees, or knows of its own moves, often tells most of the state: no belief has
more of RockSample[7, 8]'s 12,545 states than the 256 of one cell. A frame is such a set. Beliefs, alpha
vectors and points of the upper bound live in frames, as short dense rows, and all that can follow a belief is
one sparse product.
"""

from collections import deque
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array, vstack

from mulv.tabular.pomdp import POMDP

LIMIT = 4  # frames of more states together than so many times |S| do not pay: then all states are one frame


class Group(NamedTuple):
    """The outcomes that lead to one frame, next to each other."""

    frame: int
    slots: slice  # which outcomes
    columns: slice  # where their beliefs are in the stacked vector
    shape: tuple[int, int]  # (outcomes, states of the frame)


class Frame(NamedTuple):
    """Some states, and one step from them. An outcome is an action and an observation that may follow it."""

    states: np.ndarray  # (n,)
    reward: np.ndarray  # (A, n)
    forward: csr_array  # (columns, n): b ↦ P(s', o | b, a) of all outcomes, stacked
    backward: csr_array  # its transpose
    action: np.ndarray  # (outcomes,)
    observation: np.ndarray  # (outcomes,)
    groups: tuple[Group, ...]
    group: np.ndarray  # (outcomes,): which group each outcome is in

    def outcomes(self, a: int) -> list[int]:
        """Those of an action."""
        return [int(slot) for slot in np.flatnonzero(self.action == a)]

    def columns(self, slot: int) -> slice:
        """Where an outcome's belief is in the stacked vector."""
        group = self.groups[self.group[slot]]
        width = group.shape[1]
        first = group.columns.start + (slot - group.slots.start) * width
        return slice(first, first + width)


class Start(NamedTuple):
    """A belief that an episode may begin with."""

    probability: float
    frame: int
    belief: np.ndarray


class Frames(NamedTuple):
    """All that point-based planning needs to know of a POMDP."""

    frames: tuple[Frame, ...]
    starts: tuple[Start, ...]


def find_frames(pomdp: POMDP, limit: float = LIMIT) -> Frames:
    """Frames that are closed: what follows a belief in one of them lies in one of them."""
    first = _first_beliefs(pomdp)
    supports = _closed_supports(pomdp, [np.flatnonzero(b) for _, b in first], limit)
    masks = np.zeros((len(supports), pomdp.states), dtype=bool)
    for mask, support in zip(masks, supports, strict=True):
        mask[support] = True
    frames = tuple(_frame(pomdp, states, supports, masks) for states in supports)
    starts = []
    for probability, belief in first:
        home = _home(masks, np.flatnonzero(belief))
        assert home is not None  # supports are closed, and these began it
        starts.append(Start(probability, home, belief[supports[home]]))
    return Frames(frames, tuple(starts))


def _first_beliefs(pomdp: POMDP) -> list[tuple[float, np.ndarray]]:
    """b(s_0 | o_0) of every o_0, with its probability."""
    if pomdp.initial_observation is None:
        return [(1.0, pomdp.start)]
    joint = (pomdp.initial_observation * pomdp.start[:, None]).toarray().T
    total = joint.sum(axis=1)
    return [(float(total[o]), joint[o] / total[o]) for o in np.flatnonzero(total)]


def _home(masks: np.ndarray, support: np.ndarray) -> int | None:
    """The smallest set that holds the support."""
    holding = np.flatnonzero(masks[:, support].all(axis=1))
    return int(holding[np.argmin(masks[holding].sum(axis=1))]) if len(holding) else None


def _closed_supports(pomdp: POMDP, first: list[np.ndarray], limit: float) -> list[np.ndarray]:
    """Reachable supports, without those inside others; all states if those are too many."""
    masks: list[np.ndarray] = []
    waiting = deque(first)
    while waiting:
        support = waiting.popleft()
        if any(mask[support].all() for mask in masks):
            continue
        mask = np.zeros(pomdp.states, dtype=bool)
        mask[support] = True
        masks = [other for other in masks if not np.all(mask[other])] + [mask]
        if sum(int(m.sum()) for m in masks) > limit * pomdp.states:
            return [np.arange(pomdp.states)]
        for a in range(pomdp.actions):
            waiting.extend(_followers(pomdp, support, a).values())
    return [np.flatnonzero(mask) for mask in masks]


def _followers(pomdp: POMDP, support: np.ndarray, a: int) -> dict[int, np.ndarray]:
    """For each observation that may follow: where the state can then be."""
    reached = np.unique(pomdp.transition[a][support].indices)
    seen = pomdp.observation[a][reached].tocsc()
    return {
        int(o): reached[np.sort(seen.indices[seen.indptr[o] : seen.indptr[o + 1]])]
        for o in np.flatnonzero(np.diff(seen.indptr))
    }


def _frame(pomdp: POMDP, states: np.ndarray, supports: list[np.ndarray], masks: np.ndarray) -> Frame:
    outcomes = []  # (frame it leads to, action, observation)
    for a in range(pomdp.actions):
        for o, support in _followers(pomdp, states, a).items():
            home = _home(masks, support)
            assert home is not None  # supports are closed
            outcomes.append((home, a, o))
    outcomes.sort()
    targets, action, observation = map(np.array, zip(*outcomes, strict=True))
    moved = {a: pomdp.transition[a][states].tocsc() for a in range(pomdp.actions)}
    likelihood = {a: pomdp.observation[a].tocsc() for a in range(pomdp.actions)}
    blocks, groups, column = [], [], 0
    for target in np.unique(targets):
        inside = np.flatnonzero(targets == target)
        there = supports[target]
        for slot in inside:
            a, o = int(action[slot]), int(observation[slot])
            seen = likelihood[a][:, [o]].toarray()[there]
            blocks.append((moved[a][:, there].T * seen).tocsr())
        shape = (len(inside), len(there))
        after = column + len(inside) * len(there)
        slots = slice(int(inside[0]), int(inside[-1]) + 1)
        groups.append(Group(int(target), slots, slice(column, after), shape))
        column = after
    forward = csr_array(vstack(blocks, format="csr"))
    forward.eliminate_zeros()
    group = np.repeat(np.arange(len(groups)), [g.shape[0] for g in groups])
    return Frame(
        states,
        pomdp.reward[:, states],
        forward,
        forward.T.tocsr(),
        action,
        observation,
        tuple(groups),
        group,
    )
