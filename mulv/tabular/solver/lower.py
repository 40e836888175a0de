"""Alpha vectors over one frame: V(b) ≥ max α·b, each α the value of a plan that begins with its action."""

import numpy as np

from mulv.tabular.solver.rows import GrowingRows

SPARE = 16  # superseded vectors that are not worth a look


class Vectors(GrowingRows):
    """One vector a row, its action beside. Only superseded ones are at most another in every state."""

    def __init__(self, values: np.ndarray):
        super().__init__(values.shape[1])
        self._superseded: set[int] = set()
        for action, vector in enumerate(values):
            self.add(vector, action)

    def add(self, vector: np.ndarray, action: int) -> None:
        """Take a vector in, unless one dominates it; those it dominates are superseded."""
        if np.any(np.all(self.rows >= vector, axis=1)):
            return
        self._superseded.update(np.flatnonzero(np.all(self.rows <= vector, axis=1)).tolist())
        self.append(vector, action)

    def tidy(self) -> None:
        """Drop superseded vectors once they are the larger half; places change then."""
        if len(self._superseded) > max(self.size / 2, SPARE):
            self.keep(self._alive())
            self._superseded.clear()

    def kept(self) -> tuple[np.ndarray, np.ndarray]:
        """(vectors, n) and their actions, without superseded ones."""
        alive = self._alive()
        return self.rows[alive], self.beside[alive].astype(int)

    def _alive(self) -> np.ndarray:
        alive = np.ones(self.size, dtype=bool)
        alive[list(self._superseded)] = False
        return alive
