"""Every window x_h and every belief b(τ_h) that an episode can reach, exactly.

x_h = (o_{h−L+1}, a_{h−L+1}, …, a_{h−1}, o_h), shorter at the start of an episode; a POMDP that shows nothing
before a_0 has `NO_OBSERVATION` for o_0. For policies that read windows or beliefs, the future of a history
τ_h depends on its window and its belief alone, so histories that agree in both are one: a
decodable POMDP has one a window.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mulv.core.errors import MulvError
from mulv.tabular.pomdp import POMDP

NO_OBSERVATION = -1
SAME_BELIEF = 10  # decimals in which the beliefs of one merged history agree

WindowKey = tuple[int, ...]
Policy = Sequence[np.ndarray]  # a step: π_h(a | τ_h) as (histories, A)


@dataclass(frozen=True, eq=False)
class Layer:
    """Step h: its windows, and its histories as a window and a belief each."""

    windows: tuple[WindowKey, ...]
    window: np.ndarray  # (histories,): place in `windows`
    belief: np.ndarray  # (histories, S): b(τ_h)
    probability: np.ndarray  # (histories, A, O): P(o_{h+1} | b(τ_h), a_h)
    next_history: np.ndarray  # (histories, A, O): place in the next layer, or −1


@dataclass(frozen=True, eq=False)
class Histories:
    """What a POMDP can show in its first decisions, h = 0, …, H−1, to an agent with windows of `length` L."""

    pomdp: POMDP
    length: int
    first: np.ndarray  # (histories of step 0,): their probabilities
    layers: tuple[Layer, ...]

    @property
    def horizon(self) -> int:
        """H: how many decisions there are."""
        return len(self.layers)


def enumerate_histories(pomdp: POMDP, length: int, horizon: int, limit: int = 20_000_000) -> Histories:
    """All reachable histories of `horizon` decisions, seen through windows of `length` observations.

    A step whose values would be more than `limit` numbers is an error, before memory is.
    """
    if length < 1 or horizon < 1:
        raise MulvError(f"windows of {length} observations over {horizon} decisions: both need one")
    found, first = _start(pomdp)
    layers = []
    for h in range(horizon):
        place = {window: i for i, window in enumerate(dict.fromkeys(window for window, _ in found))}
        window = np.array([place[x] for x, _ in found])
        belief = np.array([b for _, b in found])
        predicted = [belief @ t for t in pomdp.transition]  # p(s_{h+1} | τ_h, a_h)
        probability = np.stack([p @ o for p, o in zip(predicted, pomdp.observation, strict=True)], axis=1)
        next_history = np.full(probability.shape, -1)
        if h + 1 < horizon:
            found = _extend(pomdp, length, limit, found, predicted, next_history)
        layers.append(Layer(tuple(place), window, belief, probability, next_history))
    return Histories(pomdp, length, first, tuple(layers))


Found = list[tuple[WindowKey, np.ndarray]]


def _start(pomdp: POMDP) -> tuple[Found, np.ndarray]:
    """b(s_0 | o_0) of every o_0 there can be, and how probable each is."""
    if pomdp.initial_observation is None:
        return [((NO_OBSERVATION,), pomdp.start)], np.ones(1)
    joint = pomdp.start[:, None] * pomdp.initial_observation.toarray()
    seen = np.flatnonzero(joint.sum(axis=0))
    first = joint[:, seen].sum(axis=0)
    return [((int(o),), joint[:, o] / p) for o, p in zip(seen, first, strict=True)], first


def _extend(
    pomdp: POMDP, length: int, limit: int, found: Found, predicted: list[np.ndarray], next_history: np.ndarray
) -> Found:
    """The next step's histories by eq. belief; where each history leads is written in `next_history`."""
    places: dict[tuple[WindowKey, bytes], int] = {}
    following: Found = []
    for a, (after, emission) in enumerate(zip(predicted, pomdp.observation, strict=True)):
        for o, likelihood in enumerate(emission.toarray().T):
            joint = after * likelihood
            total = joint.sum(axis=1)
            for n in np.flatnonzero(total):
                belief = joint[n] / total[n]
                window = (*found[n][0], a, o)[-(2 * length - 1) :]
                key = window, _rounded(belief).tobytes()
                place = places.setdefault(key, len(following))
                if place == len(following):
                    following.append((window, belief))
                next_history[n, a, o] = place
                if len(following) * pomdp.states * max(pomdp.actions, pomdp.observations) > limit:
                    raise MulvError(
                        f"a step of this POMDP has more than {len(following):,} histories that differ in "
                        "their window or belief; take a shorter horizon"
                    )
    return following


def distinct(beliefs: np.ndarray) -> np.ndarray:
    """(rows,): which of the distinct beliefs each row is, up to rounding."""
    return np.unique(_rounded(beliefs), axis=0, return_inverse=True)[1].reshape(-1)


def _rounded(beliefs: np.ndarray) -> np.ndarray:
    return np.round(beliefs, SAME_BELIEF) + 0.0  # + 0.0: −0 is 0


def window_suffixes(layer: Layer, length: int) -> tuple[np.ndarray, int]:
    """(histories,): which of the distinct last `length` observations each history ends with; their number."""
    places: dict[WindowKey, int] = {}
    endings = (window[-(2 * length - 1) :] for window in layer.windows)
    suffix = np.array([places.setdefault(ending, len(places)) for ending in endings])
    return suffix[layer.window], len(places)


def history_occupancy(histories: Histories, policy: Policy) -> list[np.ndarray]:
    """d^π(τ_h): a step, the probability of each of its histories."""
    occupancy = [histories.first]
    for layer, pi, following in zip(histories.layers, policy, histories.layers[1:], strict=False):
        flow = occupancy[-1][:, None, None] * pi[:, :, None] * layer.probability
        real = layer.next_history >= 0
        size = len(following.window)
        occupancy.append(np.bincount(layer.next_history[real], weights=flow[real], minlength=size))
    return occupancy


def decode(histories: Histories, policy: Policy) -> list[np.ndarray]:
    """P^π(s_h | x_h): a step, (windows, S). With L-decodability it is p*(x_h), the same for every policy.

    A window that π never meets is decoded by the plain mean of its histories' beliefs.
    """
    decoded = []
    for layer, d in zip(histories.layers, history_occupancy(histories, policy), strict=True):
        met = np.bincount(layer.window, d, minlength=len(layer.windows))[layer.window] > 0
        rows = np.zeros((len(layer.windows), histories.pomdp.states))
        np.add.at(rows, layer.window, np.where(met, d, 1.0)[:, None] * layer.belief)
        decoded.append(rows / rows.sum(axis=1, keepdims=True))
    return decoded
