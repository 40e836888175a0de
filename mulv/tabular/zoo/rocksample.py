"""RockSample[n, k] (Smith and Simmons, 2004): which of k rocks are worth a visit, told by a far sensor."""

from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array

from mulv.core.errors import MulvError
from mulv.tabular.pomdp import POMDP
from mulv.tabular.zoo.kernels import points

GOOD, BAD, EXIT, ILLEGAL = 10.0, -10.0, 10.0, -100.0
LARGEST = 2_000_000  # states


class Field(NamedTuple):
    """Where the rocks are, and at which distance the sensor is half as efficient as at none."""

    start: tuple[int, int]
    rocks: tuple[tuple[int, int], ...]
    half_distance: float


# Of the generators that came with the authors' solver. The sensor of [4, 4] is exp(-d): far weaker.
PUBLISHED = {
    (4, 4): Field((0, 2), ((3, 1), (2, 1), (1, 3), (1, 0)), float(np.log(2))),
    (7, 8): Field((0, 3), ((2, 0), (0, 1), (3, 1), (6, 3), (2, 4), (3, 4), (5, 5), (1, 6)), 20.0),
}


def drawn_field(n: int, k: int, seed: int) -> Field:
    """Rocks in k different cells drawn at random; otherwise like [7, 8]."""
    cells = np.random.default_rng(seed).choice(n * n, size=k, replace=False)
    return Field((0, n // 2), tuple((int(c) // n, int(c) % n) for c in cells), 20.0)


def rocksample(n: int, k: int, *, seed: int = 0, field: Field | None = None) -> POMDP:
    """n·n·2^k + 1 states; the published field where there is one, else one drawn with `seed`.

    State (x·n + y)·2^k + r, rock 0 being the highest bit of r and 1 meaning good; the last state is the end,
    reached by leaving to the east, and by anything that is not possible. Actions: north, east, south, west, a
    check of each rock, sample. Nothing but a check ever reads "bad".
    """
    if n < 1 or k < 0 or k > n * n:
        raise MulvError(f"RockSample of size {n} with {k} rocks: they must be in different cells")
    if k > 20 or n * n * 2**k >= LARGEST:
        raise MulvError(f"RockSample of size {n} with {k} rocks has more than {LARGEST} states")
    field = field or PUBLISHED.get((n, k)) or drawn_field(n, k, seed)
    qualities, end = 2**k, n * n * 2**k
    x, y, r = np.unravel_index(np.arange(end), (n, n, qualities))
    alone = np.zeros(end)  # rewards and observations of an action that does nothing to note

    def arrive(x: np.ndarray, y: np.ndarray, r: np.ndarray) -> csr_array:
        """Matrix of arriving at (x, y) with rocks r; at the end from outside the field."""
        inside = (x >= 0) & (x < n) & (y >= 0) & (y < n)
        return points(np.append(np.where(inside, (x * n + y) * qualities + r, end), end), end + 1)

    def readings(good: np.ndarray) -> np.ndarray:
        return np.stack([np.append(good, 1), np.append(1 - good, 0)], axis=1)

    transition, observation, reward = [], [], []
    for dx, dy in ((0, 1), (1, 0), (0, -1), (-1, 0)):
        transition.append(arrive(x + dx, y + dy, r))
        observation.append(readings(alone + 1))
        outside = (x + dx < 0) | (y + dy < 0) | (y + dy >= n)
        reward.append(np.where(x + dx >= n, EXIT, np.where(outside, ILLEGAL, 0)))
    for rock, (rock_x, rock_y) in enumerate(field.rocks):
        transition.append(arrive(x, y, r))
        efficiency = 2 ** (-np.hypot(x - rock_x, y - rock_y) / field.half_distance)
        is_good = r >> (k - 1 - rock) & 1
        observation.append(readings(efficiency * is_good + (1 - efficiency) / 2))
        reward.append(alone)
    bit = np.zeros((n, n), int)  # of the rock in a cell, 0 for none
    for rock, place in enumerate(field.rocks):
        bit[place] = 1 << (k - 1 - rock)
    here = bit[x, y]
    transition.append(arrive(np.where(here > 0, x, -1), y, r & ~here))
    observation.append(readings(alone + 1))
    reward.append(np.where(here == 0, ILLEGAL, np.where(r & here, GOOD, BAD)))

    start = np.append(((x == field.start[0]) & (y == field.start[1])) / qualities, 0)
    return POMDP(
        transition=tuple(transition),
        observation=tuple(observation),
        reward=np.stack([np.append(each, 0) for each in reward]),
        start=start,
        discount=0.95,
        state_names=(
            *(f"s{a}-{b}-{c:0{k}b}" for a, b, c in zip(x.tolist(), y.tolist(), r.tolist(), strict=True)),
            "end",
        ),
        action_names=("north", "east", "south", "west", *(f"check{i}" for i in range(k)), "sample"),
        observation_names=("good", "bad"),
    )
