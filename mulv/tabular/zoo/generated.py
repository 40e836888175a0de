"""POMDPs made for the theory: decodable by a window of exactly L, and by no short window at all."""

import numpy as np
from scipy.sparse import block_diag, csr_array

from mulv.core.errors import MulvError
from mulv.tabular.pomdp import POMDP
from mulv.tabular.zoo.kernels import points


def random_decodable(
    L: int = 2,
    *,
    seed: int = 0,
    values: int = 2,
    hidden: int = 2,
    symbols: int = 2,
    actions: int = 2,
    H: int = 6,
) -> POMDP:
    """A random POMDP whose belief is a function of the last L observations, and of no fewer.

    A state is (phase, v, w). The phase turns 0, 1, …, L − 1 and is always seen. v, one of `values`, is shown
    at phase 0 and only hinted at, by one of `symbols`, at the others; between two showings an action permutes
    it, so that it stays known. w, one of `hidden`, is drawn at phase 0 given v and never shown: the belief is
    no point mass, but it is the same after every history that ends in one window. Both decide what v comes
    next. The expected reward is that of a random r(o, a) in [0, 1].
    """
    if min(L, values, hidden, symbols, actions, H) < 1:
        raise MulvError("a random decodable POMDP needs positive sizes")
    rng = np.random.default_rng(seed)
    chance = rng.dirichlet(np.ones(hidden), size=values)  # of w given v
    after = rng.dirichlet(np.ones(values), size=(actions, values * hidden))  # of the next v
    anew = (after[..., None] * chance).reshape(actions, values * hidden, values * hidden)
    transition = [_turning(L, values, hidden, anew[a], rng) for a in range(actions)]
    hints = [rng.dirichlet(np.ones(symbols), size=values) for _ in range(L - 1)]
    emit = block_diag([np.repeat(shown, hidden, axis=0) for shown in (np.eye(values), *hints)]).tocsr()
    start = np.zeros(L * values * hidden)
    start[: values * hidden] = (rng.dirichlet(np.ones(values))[:, None] * chance).ravel()
    return POMDP(
        transition=tuple(transition),
        observation=(emit,) * actions,
        reward=(emit @ rng.random((emit.shape[1], actions))).T,
        start=start,
        discount=1.0,
        initial_observation=emit,
        horizon=H,
    )


def _turning(L: int, values: int, hidden: int, anew: np.ndarray, rng: np.random.Generator) -> csr_array:
    """One action's matrix: a permutation of v from phase to phase, `anew` from the last to the first."""
    size = values * hidden
    matrix = np.zeros((L, size, L, size))
    for phase in range(L - 1):
        permutation = np.eye(values)[rng.permutation(values)]
        matrix[phase, :, phase + 1] = np.kron(permutation, np.eye(hidden))
    matrix[L - 1, :, 0] = anew
    return csr_array(matrix.reshape(L * size, L * size))


def t_maze(length: int = 8) -> POMDP:
    """A sign at the beginning says which way to turn at the end of a corridor, where nothing else tells.

    Forward moves; only at the junction a turn counts: the right one pays one. A window decodes it only if it
    reaches back to the sign, over the whole corridor.
    """
    if length < 1:
        raise MulvError(f"a T-maze of length {length}: its corridor needs a cell")
    places = length + 2  # the sign, the corridor, the junction
    end = 2 * places
    place, side = np.divmod(np.arange(end), 2)
    forward = np.where(place < places - 1, 2 * (place + 1) + side, end)
    turn = np.where(place < places - 1, np.arange(end), end)
    look = np.append(np.where(place == 0, side, place + 1), places + 1)
    emit = points(look, places + 2)
    at_junction = place == places - 1
    reward = [np.zeros(end), *(at_junction & (side == way) for way in (0, 1))]
    start = np.zeros(end + 1)
    start[:2] = 0.5
    return POMDP(
        transition=tuple(points([*to, end], end + 1) for to in (forward, turn, turn)),
        observation=(emit,) * 3,
        reward=np.stack([np.append(each, 0) for each in reward]),
        start=start,
        discount=1.0,
        initial_observation=emit,
        horizon=places,
        state_names=(*(f"{'ab'[s]}{p}" for p, s in zip(place, side, strict=True)), "end"),
        action_names=("forward", "turn-a", "turn-b"),
        observation_names=("sign-a", "sign-b", *(f"cell{i}" for i in range(length)), "junction", "end"),
    )
