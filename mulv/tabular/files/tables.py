"""What a `.pomdp` file has said so far: rows that later entries override, and rewards to be averaged."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
from scipy.sparse import csr_array

from mulv.tabular.files.lexer import Reader
from mulv.tabular.pomdp import TOLERANCE

ROUNDED = 1e-5  # how far from one a row may be that was written with few digits; it is rescaled
ENTRIES = 30_000_000  # that all statements of a file may set: wildcards make much of little


@dataclass
class Kernel:
    """T or O: for each action, sparse rows by state."""

    letter: str
    actions: tuple[str, ...]
    states: tuple[str, ...]
    columns: int
    rows: dict[tuple[int, int], dict[int, float]] = field(default_factory=dict)
    lines: dict[tuple[int, int], int] = field(default_factory=dict)

    def set_row(self, a: int, s: int, row: Mapping[int, float], line: int) -> None:
        """All of a row: what is not in it is zero."""
        self.rows[a, s], self.lines[a, s] = dict(row), line

    def set_entry(self, a: int, s: int, column: int, p: float, line: int) -> None:
        self.rows.setdefault((a, s), {})[column] = p
        self.lines[a, s] = line

    def matrices(self, reader: Reader) -> tuple[csr_array, ...]:
        """An action: (S, columns). A row that is no distribution is an error in its last line."""
        return tuple(self._matrix(a, reader) for a in range(len(self.actions)))

    def _matrix(self, a: int, reader: Reader) -> csr_array:
        indptr, indices, data = [0], list[int](), list[float]()
        for s in range(len(self.states)):
            what = f"{self.letter} of action {self.actions[a]} in state {self.states[s]}"
            if (a, s) not in self.rows:
                raise reader.error(f"{what} is never given")
            columns, p = zip(*sorted(self.rows[a, s].items()), strict=True) if self.rows[a, s] else ((), ())
            indices += columns
            data += as_distribution(p, what, reader, self.lines[a, s])
            indptr.append(len(indices))
        return csr_array((data, indices, indptr), shape=(len(self.states), self.columns))


def as_distribution(values: Iterable[float], what: str, reader: Reader, line: int) -> list[float]:
    """The probabilities; rescaled where few digits made them miss one by little."""
    p = list(values)
    total = sum(p)
    if abs(total - 1) > ROUNDED:
        raise reader.error(f"{what} sums to {total:.10g}, not to one", line)
    return [each / total for each in p] if abs(total - 1) > TOLERANCE else p


@dataclass
class Rewards:
    """R(a, s, s', o), as statements in order: the last that covers a case counts. None is `*`."""

    # By action, state and next state: (order, observation, value), the value a number, or an array over
    # observations, or over next states and observations.
    said: dict[tuple[int | None, int | None, int | None], list[tuple[int, int | None, float | np.ndarray]]]
    count: int = 0

    @classmethod
    def none(cls) -> "Rewards":
        return cls(defaultdict(list))

    def say(
        self, a: int | None, s: int | None, s1: int | None, o: int | None, value: float | np.ndarray
    ) -> None:
        self.said[a, s, s1].append((self.count, o, value))
        self.count += 1

    def expected(self, transition: tuple[csr_array, ...], observation: tuple[csr_array, ...]) -> np.ndarray:
        """(A, S): Σ_{s'} T(s'|s,a) Σ_o O(o|a,s') R(a, s, s', o)."""
        result = np.zeros((len(transition), transition[0].shape[0]))
        for a, (t, z) in enumerate(zip(transition, observation, strict=True)):
            for s in range(t.shape[0]):
                places = slice(t.indptr[s], t.indptr[s + 1])
                result[a, s] = self._mean(a, s, t.indices[places], t.data[places], z)
        return result

    def _mean(self, a: int, s: int, next_states: np.ndarray, p: np.ndarray, observation: csr_array) -> float:
        statements = [
            (order, s1, o, value)
            for s1 in (*next_states.tolist(), None)
            for key in ((a, s, s1), (a, None, s1), (None, s, s1), (None, None, s1))
            if key in self.said
            for order, o, value in self.said[key]
        ]
        if not statements:
            return 0.0
        statements.sort(key=lambda statement: statement[0])
        _, s1, o, value = statements[-1]
        if s1 is None and o is None and isinstance(value, float):
            return value  # as it was written: a sum of probabilities would cost its last digits
        cases = observation[next_states].tocoo()  # what may be seen after each next state
        at, seen = next_states[cases.row], cases.col
        reward = np.zeros(len(at))
        for _, s1, o, value in statements:
            covered = (np.full(len(at), s1 is None) | (at == s1)) & (
                np.full(len(at), o is None) | (seen == o)
            )
            if isinstance(value, np.ndarray):
                value = value[at, seen] if value.ndim == 2 else value[seen]
            reward = np.where(covered, value, reward)
        with np.errstate(over="ignore", invalid="ignore"):  # an infinite reward is refused by the POMDP
            return float(np.sum(p[cases.row] * cases.data * reward))
