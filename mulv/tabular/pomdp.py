"""A finite POMDP as arrays, checked when it is made.

One step, as everywhere in the house: at s_h the agent takes a_h, receives r(a_h, s_h), the state becomes
s_{h+1} ~ T[a_h][s_h], and the agent sees o_{h+1} ~ O[a_h][s_{h+1}].
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array

from mulv.core.errors import MulvError

TOLERANCE = 1e-8  # how far a distribution's sum may be from one


class Dense(NamedTuple):
    """The kernels as arrays: only for POMDPs whose A·S² numbers fit in memory."""

    T: np.ndarray  # (A, S, S')
    O: np.ndarray  # (A, S', O)  # noqa: E741


@dataclass(frozen=True, eq=False)
class POMDP:
    """(S, A, O, r, ρ0, T, O) with a discount, a horizon H, or both.

    Anything SciPy makes a sparse array of may be given; it is copied and kept as float64. Things without
    names are called by their index, as in Cassandra's files.
    """

    transition: tuple[csr_array, ...]  # an action: (S, S')
    observation: tuple[csr_array, ...]  # an action: (S', O), of what is seen on arriving in s'
    reward: np.ndarray  # (A, S): expected immediate reward
    start: np.ndarray  # (S,): ρ0
    discount: float
    initial_observation: csr_array | None = None  # (S, O) of o_0 at s_0; None: nothing is seen before a_0
    horizon: int | None = None  # decisions an episode; None: no end
    state_names: tuple[str, ...] = ()
    action_names: tuple[str, ...] = ()
    observation_names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        kernels = {}
        for field in ("transition", "observation"):
            each = getattr(self, field)
            kernels[field] = tuple(_sparse(f"{field} of action {a}", m) for a, m in enumerate(each))
            if not each:
                raise MulvError(f"a POMDP needs at least one action, but {field} is empty")
        (states, _), (_, observations) = kernels["transition"][0].shape, kernels["observation"][0].shape
        if not states or not observations:
            raise MulvError(f"a POMDP of {states} states and {observations} observations: both need one")
        names = {
            "state_names": _names("state", self.state_names, states),
            "action_names": _names("action", self.action_names, len(kernels["transition"])),
            "observation_names": _names("observation", self.observation_names, observations),
        }
        first = self.initial_observation
        arrays = {
            "reward": _dense("reward", self.reward),
            "start": _dense("start", self.start),
            "initial_observation": None if first is None else _sparse("initial_observation", first),
        }
        for field, value in {**kernels, **names, **arrays}.items():
            object.__setattr__(self, field, value)
        self._check()

    def _check(self) -> None:
        """Raise unless shapes agree, kernels are stochastic, and the numbers are finite."""
        if len(self.observation) != self.actions:
            raise MulvError(
                f"transition has {self.actions} actions, but observation has {len(self.observation)}"
            )
        rows = self.state_names
        for a, name in enumerate(self.action_names):
            transition, observation = f"transition of action {name}", f"observation of action {name}"
            _check_stochastic(transition, self.transition[a], (self.states, self.states), rows)
            _check_stochastic(observation, self.observation[a], (self.states, self.observations), rows)
        first = self.initial_observation
        if first is not None:
            _check_stochastic("initial_observation", first, (self.states, self.observations), rows)
        _check_shape("start", self.start.shape, (self.states,))
        _check_stochastic("start", csr_array(self.start[None]), (1, self.states), ())
        _check_shape("reward", self.reward.shape, (self.actions, self.states))
        if not np.all(np.isfinite(self.reward)):
            a, s = np.argwhere(~np.isfinite(self.reward))[0]
            raise MulvError(
                f"reward of action {self.action_names[a]} in state {rows[s]} is {self.reward[a, s]}"
            )
        if not 0 <= self.discount <= 1:
            raise MulvError(f"discount is {self.discount}; it must lie between 0 and 1")
        if self.horizon is not None and self.horizon < 1:
            raise MulvError(f"horizon is {self.horizon}; an episode has at least one decision")

    @property
    def states(self) -> int:
        """|S|."""
        return int(self.transition[0].shape[0])

    @property
    def actions(self) -> int:
        """|A|."""
        return len(self.transition)

    @property
    def observations(self) -> int:
        """|O|."""
        return int(self.observation[0].shape[1])

    @property
    def terminal(self) -> np.ndarray:
        """(S,) which states end an episode: no action leaves them, and none pays anything there."""
        stays = np.all([t.diagonal() >= 1 - TOLERANCE for t in self.transition], axis=0)
        return stays & np.all(self.reward == 0, axis=0)

    def dense(self) -> Dense:
        """T (A, S, S') and O (A, S', O) as arrays."""
        return Dense(
            np.stack([t.toarray() for t in self.transition]),
            np.stack([o.toarray() for o in self.observation]),
        )


def _sparse(what: str, matrix: Any) -> csr_array:
    """A copy in float64 without explicit zeros, indices in order."""
    try:
        array = csr_array(matrix, dtype=np.float64, copy=True)
    except (TypeError, ValueError) as error:
        raise MulvError(f"{what} is not a matrix of numbers: {error}") from error
    if array.ndim != 2:
        raise MulvError(f"{what} has shape {array.shape}; it must be a matrix")
    array.sum_duplicates()
    array.eliminate_zeros()
    return array


def _dense(what: str, values: Any) -> np.ndarray:
    """A read-only copy in float64."""
    try:
        array = np.array(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise MulvError(f"{what} is not an array of numbers: {error}") from error
    array.flags.writeable = False
    return array


def _names(what: str, names: Iterable[str], count: int) -> tuple[str, ...]:
    """The names as given, or indices for none."""
    names = tuple(names) or tuple(map(str, range(count)))
    if len(names) != count:
        raise MulvError(f"{len(names)} {what} names were given for {count} {what}s")
    if len(set(names)) < count:
        twice = next(name for i, name in enumerate(names) if name in names[:i])
        raise MulvError(f"two {what}s are called {twice!r}")
    return names


def _check_shape(what: str, got: tuple[int, ...], expected: tuple[int, ...]) -> None:
    if got != expected:
        raise MulvError(f"{what} has shape {got}; it must be {expected}")


def _check_stochastic(what: str, matrix: csr_array, shape: tuple[int, int], rows: Sequence[str]) -> None:
    """Raise unless every row is a distribution; `rows` name them in the message."""
    _check_shape(what, matrix.shape, shape)

    def row(i: int) -> str:
        return f"{what} in state {rows[i]}" if rows else what

    wrong = ~np.isfinite(matrix.data) | (matrix.data < 0)
    if np.any(wrong):
        entry = int(np.flatnonzero(wrong)[0])
        i = int(np.searchsorted(matrix.indptr, entry, side="right")) - 1
        raise MulvError(f"{row(i)} has the probability {matrix.data[entry]}")
    sums = matrix.sum(axis=1)
    far = np.abs(sums - 1) > TOLERANCE
    if np.any(far):
        i = int(np.flatnonzero(far)[0])
        raise MulvError(f"{row(i)} sums to {sums[i]:.10g}, not to one")
