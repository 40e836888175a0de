"""Heuristic search value iteration (Smith and Simmons, 2005) over frames: two bounds that close at the start.

A trial walks from a first belief by the action whose upper bound is highest, to the observation after which
the bounds are furthest apart, until they are close enough; on its way back it improves both at every belief.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from mulv.core.errors import MulvError
from mulv.tabular.pomdp import POMDP
from mulv.tabular.solver.frames import Frame, find_frames
from mulv.tabular.solver.initial import blind_values, informed_values
from mulv.tabular.solver.lower import Vectors
from mulv.tabular.solver.upper import Points

AMBITION = 0.5  # a trial wants to bring the gap at the start to this share
SAME_BELIEF = 16  # last bits of 52 in which two probabilities that are one may differ
CROSSED = 1e-7  # of the largest value: rounding


@dataclass(eq=False, slots=True)
class Node:
    """A belief that a trial came to, with the bounds of what may follow; those are as of the rows read."""

    frame: int
    belief: np.ndarray
    lower: np.ndarray  # (outcomes,): best α·b', unnormalised
    choice: np.ndarray  # (outcomes,): which vector that is
    upper: np.ndarray  # (outcomes,)
    vectors_read: np.ndarray  # (groups,)
    points_read: np.ndarray  # (outcomes,)
    reward: np.ndarray  # (A,)


class Following(NamedTuple):
    """An outcome of a belief's best action, and the belief after it."""

    slot: int
    probability: float
    node: Node


class Search:
    """Bounds of a discounted POMDP's value, and the search that closes them.

    `informed` (A, S) is the upper bound max_a Σ_s b(s) informed[a, s] to start from: the fast informed bound.
    """

    def __init__(self, pomdp: POMDP, informed: np.ndarray | None = None):
        informed = informed_values(pomdp) if informed is None else informed
        blind = blind_values(pomdp)
        self.pomdp = pomdp
        self.frames = find_frames(pomdp)
        self.lower = [Vectors(blind[:, frame.states]) for frame in self.frames.frames]
        self.upper = [Points(informed[:, frame.states]) for frame in self.frames.frames]
        self._nodes: dict[tuple[int, bytes], Node] = {}
        self._roots = [self._node(start.frame, start.belief) for start in self.frames.starts]
        self._weights = np.array([start.probability for start in self.frames.starts])
        self._rounding = CROSSED * max(float(np.abs(informed).max()), float(np.abs(blind).max()))

    def bounds(self) -> tuple[float, float]:
        """Of the value at the start."""
        each = np.array([self._bounds(root) for root in self._roots])
        lower, upper = self._weights @ each
        return float(lower), float(upper)

    @property
    def beliefs(self) -> int:
        """How many beliefs trials came to."""
        return len(self._nodes)

    def trial(self, precision: float) -> None:
        """One walk and its backups; it ends where bounds are close enough for `precision` at the start."""
        each = np.array([self._bounds(root) for root in self._roots])
        gaps = each[:, 1] - each[:, 0]
        wanted = max(precision, AMBITION * float(self._weights @ gaps))
        node = self._roots[int(np.argmax(self._weights * (gaps - wanted)))]
        path = []
        while True:
            wanted /= self.pomdp.discount
            following = self._most_uncertain(node, wanted)
            if following is None:
                break
            path.append((node, following))
            node = following.node
        upper = self._backup(node)
        for node, (slot, probability, _) in reversed(path):
            # Cheaper than to read all points again when a corner has moved, which may have moved this one.
            node.upper[slot] = min(node.upper[slot], probability * upper)
            upper = self._backup(node)

    def _node(self, frame: int, belief: np.ndarray) -> Node:
        # Relative rounding: the sawtooth knows beliefs by ratios, and those of tiny probabilities count too.
        key = frame, ((belief.view(np.int64) + (1 << SAME_BELIEF - 1)) >> SAME_BELIEF).tobytes()
        node = self._nodes.get(key)
        if node is None:
            step = self.frames.frames[frame]
            outcomes = len(step.action)
            node = self._nodes[key] = Node(
                frame,
                belief,
                lower=np.full(outcomes, -np.inf),
                choice=np.zeros(outcomes, dtype=int),
                upper=np.full(outcomes, np.inf),
                vectors_read=np.zeros(len(step.groups), dtype=int),
                points_read=np.full(outcomes, -1),
                reward=step.reward @ belief,
            )
        return node

    def _bounds(self, node: Node) -> tuple[float, float]:
        points = self.upper[node.frame]
        upper = min(points.bound(node.belief), float(points.base(node.belief[None])[0]))
        return float((self.lower[node.frame].rows @ node.belief).max()), upper

    def _read_lower(self, step: Frame, node: Node, following: np.ndarray) -> np.ndarray:
        """Look at new vectors; (A,) lower bounds."""
        for g, group in enumerate(step.groups):
            vectors = self.lower[group.frame]
            first = vectors.unread(node.vectors_read[g])
            if first == vectors.size:
                continue
            values = following[group.columns].reshape(group.shape) @ vectors.rows[first:].T
            best = values.argmax(axis=1)
            value = values[np.arange(len(best)), best]
            lower, choice = node.lower[group.slots], node.choice[group.slots]
            better = (value > lower) | (first == 0)
            lower[better], choice[better] = value[better], best[better] + first
            node.vectors_read[g] = vectors.total
        return node.reward + self.pomdp.discount * _by_action(step, node.lower)

    def _read_upper(self, step: Frame, node: Node, following: np.ndarray) -> np.ndarray:
        """Look at new points where they may matter; (A,) upper bounds, the highest one up to date."""
        if node.points_read[0] < 0:
            for group in step.groups:
                beliefs = following[group.columns].reshape(group.shape)
                node.upper[group.slots] = self.upper[group.frame].base(beliefs)
            node.points_read[:] = 0
        values = node.reward + self.pomdp.discount * _by_action(step, node.upper)
        fresh = np.zeros(len(values), dtype=bool)
        while not fresh[a := int(values.argmax())]:
            for slot in step.outcomes(a):
                points = self.upper[step.groups[step.group[slot]].frame]
                if points.total > node.points_read[slot]:
                    first = points.unread(node.points_read[slot])
                    bound = points.bound(following[step.columns(slot)], first)
                    node.upper[slot] = min(node.upper[slot], bound)
                    node.points_read[slot] = points.total
            fresh[a] = True
            values[a] = node.reward[a] + self.pomdp.discount * node.upper[step.outcomes(a)].sum()
        return values

    def _most_uncertain(self, node: Node, wanted: float) -> Following | None:
        """The belief to go on with; None where all are known well enough."""
        step = self.frames.frames[node.frame]
        following = step.forward @ node.belief
        self._read_lower(step, node, following)
        a = int(self._read_upper(step, node, following).argmax())
        slots = step.outcomes(a)
        probability = np.array([following[step.columns(slot)].sum() for slot in slots])
        excess = node.upper[slots] - node.lower[slots] - wanted * probability
        best = int(excess.argmax())
        if excess[best] <= 0:
            return None
        slot = slots[best]
        target = step.groups[step.group[slot]].frame
        belief = following[step.columns(slot)] / probability[best]
        return Following(slot, float(probability[best]), self._node(target, belief))

    def _backup(self, node: Node) -> float:
        """One more vector and one more point at this belief, if they improve its bounds; the upper one."""
        step = self.frames.frames[node.frame]
        following = step.forward @ node.belief
        lower = self._read_lower(step, node, following)
        upper = float(self._read_upper(step, node, following).max())
        a = int(lower.argmax())
        if lower[a] > upper + self._rounding:
            raise MulvError(
                f"the bounds crossed at a belief, {lower[a]:.6g} above {upper:.6g}: "
                "the initial bounds do not hold for this POMDP"
            )
        was_lower, was_upper = self._bounds(node)
        if lower[a] > was_lower:
            after = np.zeros(len(following))
            for slot in step.outcomes(a):
                target = step.groups[step.group[slot]].frame
                after[step.columns(slot)] = self.lower[target].rows[node.choice[slot]]
            vector = step.reward[a] + self.pomdp.discount * (step.backward @ after)
            self.lower[node.frame].add(vector, a)
            self.lower[node.frame].tidy()
        if upper < was_upper:
            self.upper[node.frame].add(node.belief, upper)
            self.upper[node.frame].tidy()
        return min(upper, was_upper)


def _by_action(step: Frame, values: np.ndarray) -> np.ndarray:
    """(outcomes,) summed over the observations of each action."""
    return np.bincount(step.action, weights=values, minlength=len(step.reward))
