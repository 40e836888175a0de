"""Tag (Pineau, Gordon and Thrun, 2003): catch an opponent that sees you and flees, in a T-shaped room.

Of the published file this is the rule: 29 cells, 870 states numbered 30·robot + opponent, the last of the
thirty being "tagged". In a few states the file itself departs from its rule by a slip of the pen; and it lets
a robot pay for walking about after the catch, where here the episode is over.
"""

from collections.abc import Callable

import numpy as np
from scipy.sparse import eye_array

from mulv.tabular.pomdp import POMDP
from mulv.tabular.zoo.kernels import Outcomes, kernel, points

CELLS = [(x, y) for y in (0, 1) for x in range(10)] + [(x, y) for y in (2, 3, 4) for x in (5, 6, 7)]
NUMBER = {place: i for i, place in enumerate(CELLS)}
TAGGED = len(CELLS)
PER_ROBOT = TAGGED + 1
STATES = len(CELLS) * PER_ROBOT
MOVES = {"north": (0, 1), "south": (0, -1), "east": (1, 0), "west": (-1, 0)}


def _step(cell: int, dx: int, dy: int) -> int:
    """The cell that way, or the same one for a wall."""
    x, y = CELLS[cell]
    return NUMBER.get((x + dx, y + dy), cell)


def _flee(robot: int, opponent: int) -> Outcomes:
    """0.4 away along each axis, either way of it when level with the robot, and 0.2 to stay."""
    away = np.sign(np.subtract(CELLS[opponent], CELLS[robot])).tolist()
    for axis, direction in enumerate(away):
        for way in (direction,) if direction else (-1, 1):
            dx, dy = (way, 0) if axis == 0 else (0, way)
            yield _step(opponent, dx, dy), 0.4 if direction else 0.2
    yield opponent, 0.2


def tag() -> POMDP:
    """The robot knows where it is, and meets the opponent only in its own cell.

    A step costs one; catching pays ten there and costs ten elsewhere, where nothing moves meanwhile.
    """

    def move(dx: int, dy: int) -> Callable[[int], Outcomes]:
        def moved(s: int) -> Outcomes:
            robot, opponent = divmod(s, PER_ROBOT)
            if opponent == TAGGED:
                return [(s, 1.0)]
            there = PER_ROBOT * _step(robot, dx, dy)
            return [(there + fled, p) for fled, p in _flee(robot, opponent)]

        return moved

    robot, opponent = np.divmod(np.arange(STATES), PER_ROBOT)
    tagged, met = opponent == TAGGED, opponent == robot
    catch = points(np.where(met, PER_ROBOT * robot + TAGGED, np.arange(STATES)), STATES)
    moves = [kernel(STATES, STATES, move(dx, dy)) for dx, dy in MOVES.values()]
    sees_opponent = points(np.where(met, len(CELLS), robot), PER_ROBOT)
    sees_itself = eye_array(len(CELLS), PER_ROBOT).tocsr()[robot]  # the file's: a catch shows no opponent
    reward = np.stack([np.where(tagged, 0, -1)] * 4 + [np.where(tagged, 0, np.where(met, 10, -10))])
    return POMDP(
        transition=(*moves, catch),
        observation=(sees_opponent,) * 4 + (sees_itself,),
        reward=reward,
        start=np.where(tagged, 0, 1 / np.sum(~tagged)),
        discount=0.95,
        state_names=tuple(
            f"r{r}-{'tagged' if o == TAGGED else f'o{o}'}" for r, o in zip(robot, opponent, strict=True)
        ),
        action_names=(*MOVES, "catch"),
        observation_names=(*(f"at{cell}" for cell in range(len(CELLS))), "opponent"),
    )
