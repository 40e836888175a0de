"""Alpha vectors in the format of pomdp-solve: an action's number, a line of values, an empty line."""

from pathlib import Path
from typing import NamedTuple

import numpy as np

from mulv.core.errors import MulvError


class AlphaVectors(NamedTuple):
    """A lower bound of the value, max_i Σ_s b(s) values[i, s], and what to do where each is the highest."""

    values: np.ndarray  # (vectors, S)
    actions: np.ndarray  # (vectors,)

    def value(self, belief: np.ndarray) -> float:
        """The bound at a belief."""
        return float((self.values @ belief).max())

    def action(self, belief: np.ndarray) -> int:
        """The action of the vector that is highest there."""
        return int(self.actions[(self.values @ belief).argmax()])


def write_alpha(vectors: AlphaVectors, path: str | Path) -> Path:
    """Write the vectors, to the last digit."""
    path = Path(path)
    try:
        with path.open("w", encoding="ascii") as file:
            for action, values in zip(vectors.actions.tolist(), vectors.values, strict=True):
                file.write(f"{action}\n{' '.join(map(repr, values.tolist()))}\n\n")
    except OSError as error:
        raise MulvError(f"{path} cannot be written: {error.strerror}") from error
    return path


def read_alpha(path: str | Path, *, states: int | None = None, actions: int | None = None) -> AlphaVectors:
    """Read vectors; a POMDP's numbers of states and actions are checked where given."""
    path = Path(path)
    values: list[np.ndarray] = []
    chosen: list[int] = []
    try:
        with path.open(encoding="ascii") as file:
            lines = ((number, line.split()) for number, line in enumerate(file, 1) if line.strip())
            for number, words in lines:
                chosen.append(_action(words, f"{path}, line {number}", actions))
                number, words = next(lines, (number, []))
                width = states if not values else len(values[0])
                values.append(_values(words, f"{path}, line {number}", width))
    except OSError as error:
        raise MulvError(f"{path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise MulvError(f"{path} is not a file of alpha vectors: it is not text") from error
    if not values:
        raise MulvError(f"{path} has no alpha vectors: each is an action's number and a line of values")
    return AlphaVectors(np.stack(values), np.array(chosen))


def _action(words: list[str], where: str, actions: int | None) -> int:
    if len(words) != 1 or not words[0].isdecimal():
        raise MulvError(f"{where}: {' '.join(words)[:40]!r} is no action; a vector begins with one number")
    if actions is not None and int(words[0]) >= actions:
        raise MulvError(f"{where}: action {words[0]}, but the POMDP has {actions}, from 0")
    return int(words[0])


def _values(words: list[str], where: str, width: int | None) -> np.ndarray:
    try:
        values = np.array(words, dtype=np.float64)
    except ValueError as error:
        raise MulvError(f"{where}: {error}") from error
    if not len(values) or not np.all(np.isfinite(values)):
        raise MulvError(f"{where}: a vector needs a finite value for each state")
    if width is not None and len(values) != width:
        raise MulvError(f"{where}: {len(values)} values, but there are {width} states")
    return values
