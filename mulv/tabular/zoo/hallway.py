"""Hallway and Hallway2 (Littman, Cassandra and Kaelbling, 1995): a robot that feels the walls around it.

A state is a cell and a direction, numbered as in the published files: cells row by row, north east south west
within a cell. Reaching the goal pays one; whatever is done there, the robot wakes up elsewhere at random. The
files write probabilities to six digits, rounding down and giving the rest to one entry of a row; here they
are exact, so that the two differ by up to 1e-4.
"""

import itertools
from collections.abc import Callable

import numpy as np

from mulv.tabular.pomdp import POMDP
from mulv.tabular.zoo.kernels import Outcomes, kernel

NORTH, EAST, SOUTH, WEST = range(4)
STEPS = {NORTH: (-1, 0), EAST: (0, 1), SOUTH: (1, 0), WEST: (0, -1)}  # row, column
TURNS = {  # how likely by no, one, two, three quarters to the right
    "turn-right": (0.1, 0.7, 0.1, 0.1),
    "turn-around": (0.1, 0.15, 0.6, 0.15),
    "turn-left": (0.1, 0.1, 0.1, 0.7),
}
SEES_WALL, IMAGINES_WALL = 0.9, 0.05

# `+` is the goal; a digit is a cell that is recognised for certain when seen from the north of it.
HALLWAY = """
***********
  1 2 3 +
"""
HALLWAY2 = """
 *****
** * **
 * * *
** * *+
 *****
"""


class Map:
    """Cells by number, and which is next to which."""

    def __init__(self, picture: str):
        rows = picture.strip("\n").split("\n")
        where = [(r, c) for r, row in enumerate(rows) for c, mark in enumerate(row) if mark != " "]
        self.marks = [rows[r][c] for r, c in where]
        number = {place: i for i, place in enumerate(where)}
        self._next = [[number.get((r + dr, c + dc)) for dr, dc in STEPS.values()] for r, c in where]
        self.goal = self.marks.index("+")

    def next(self, cell: int, direction: int) -> int | None:
        """The cell that way; None for a wall."""
        return self._next[cell][direction % 4]


def hallway() -> POMDP:
    """A corridor of eleven cells with four alcoves, three of them with a landmark, one the goal."""
    return _navigation(HALLWAY, landmarks=(10, 18, 26, 34))


def hallway2() -> POMDP:
    """Twenty-three cells around two courtyards, and no landmarks."""
    return _navigation(HALLWAY2, landmarks=())


def _navigation(picture: str, landmarks: tuple[int, ...]) -> POMDP:
    """`landmarks` are the states seen for certain; the goal is too."""
    layout = Map(picture)
    cells = len(layout.marks)
    states = 4 * cells
    in_goal = np.arange(states) // 4 == layout.goal
    anywhere = [(s, 1 / (states - 4)) for s in range(states) if not in_goal[s]]

    def forward(s: int) -> Outcomes:
        cell, d = divmod(s, 4)
        # Which way the robot slips, how it then stands, how likely; the rest of the time it stays.
        slips = (
            (d, d, 0.8),
            (d + 1, d + 1, 0.05),
            (d + 3, d + 3, 0.05),
            (d + 2, d + 2, 0.025),
            (d + 2, d, 0.025),
        )
        for way, stands, p in slips:
            there = layout.next(cell, way)
            yield (s if there is None else 4 * there + stands % 4), p
        yield s, 0.05

    def turn(by: tuple[float, ...]) -> Callable[[int], Outcomes]:
        def turned(s: int) -> Outcomes:
            cell, d = divmod(s, 4)
            return [(4 * cell + (d + quarter) % 4, p) for quarter, p in enumerate(by)]

        return turned

    def unless_in_goal(move: Callable[[int], Outcomes]) -> Callable[[int], Outcomes]:
        return lambda s: anywhere if in_goal[s] else move(s)

    def stay(s: int) -> Outcomes:
        return [(s, 1.0)]

    moves = {"stay": stay, "forward": forward} | {name: turn(by) for name, by in TURNS.items()}
    transition = tuple(kernel(states, states, unless_in_goal(move)) for move in moves.values())
    certain = (*landmarks, states)  # the goal's observation is the last
    observations = 16 + len(certain)

    def feel(s: int) -> Outcomes:
        if in_goal[s] or s in landmarks:
            return [(16 + certain.index(states if in_goal[s] else s), 1.0)]
        cell, d = divmod(s, 4)
        walls = [layout.next(cell, d + quarter) is None for quarter in range(4)]  # front, right, back, left
        rates = [SEES_WALL if wall else IMAGINES_WALL for wall in walls]
        felt = itertools.product((False, True), repeat=4)
        return [
            (i, float(np.prod([p if f else 1 - p for f, p in zip(each, rates, strict=True)])))
            for i, each in enumerate(felt)
        ]

    observation = kernel(states, observations, feel)
    return POMDP(
        transition=transition,
        observation=(observation,) * len(moves),
        reward=np.stack([t @ in_goal.astype(float) for t in transition]),
        start=np.where(in_goal, 0, 1 / (states - 4)),
        discount=0.95,
        state_names=tuple(f"cell{cell}-{'nesw'[d]}" for cell in range(cells) for d in range(4)),
        action_names=tuple(moves),
        observation_names=(
            *(f"walls-{i:04b}" for i in range(16)),
            *(f"landmark{i}" for i in range(len(landmarks))),
            "goal",
        ),
    )
