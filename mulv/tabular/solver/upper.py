"""An upper bound over one frame by sawtooth interpolation between beliefs whose bound is known.

V is convex, so at most linear between the corners of the simplex. A belief b_i known to have at most v_i
pulls that down: V(b) ≤ c·b + (v_i − c·b_i) min_s b(s)/b_i(s), with c the bounds of the corners. All bounds
here are homogeneous: for an unnormalised belief they are its sum times that of the belief.
"""

import numpy as np

from mulv.tabular.solver.rows import GrowingRows

NEVER = 1e300  # 1 / b_i(s) where that is zero
TINY = 1e-200  # added to b(s), so that a zero over a zero is no minimum either
SPARE = 32  # points that are not worth tidying
REDUNDANT = 1e-9  # of a value: how little a point may add


class Points(GrowingRows):
    """1/b_i a row, v_i − c·b_i beside; the corners c; and the vectors of the fast informed bound."""

    def __init__(self, informed: np.ndarray):
        super().__init__(informed.shape[1])
        self._informed = informed.T.copy()  # (n, A)
        self._corners = informed.max(axis=0)
        self._tidy_size = 0

    def base(self, beliefs: np.ndarray) -> np.ndarray:
        """(k, n) → (k,): the bound without points."""
        return np.minimum(beliefs @ self._corners, (beliefs @ self._informed).max(axis=1))

    def bound(self, belief: np.ndarray, first: int = 0) -> float:
        """The bound by the corners and the points from place `first` on."""
        linear = float(belief @ self._corners)
        if first == self.size:
            return linear
        ratios = ((belief + TINY) * self.rows[first:]).min(axis=1)
        return linear + min(float(np.min(ratios * self.beside[first:])), 0.0)

    def add(self, belief: np.ndarray, value: float) -> None:
        """V(belief) ≤ value is known."""
        support = np.flatnonzero(belief)
        if len(support) == 1:  # its row then says nothing, but makes readers look at the corners again
            self._lower_corner(int(support[0]), value)
            value = self._corners[support[0]]
        with np.errstate(divide="ignore"):
            self.append(np.minimum(1 / belief, NEVER), value - float(belief @ self._corners))

    def _lower_corner(self, state: int, value: float) -> None:
        change = min(value - self._corners[state], 0.0)
        self._corners[state] += change
        seen = self.rows[:, state] < NEVER
        self.beside[seen] -= change / self.rows[seen, state]

    def tidy(self) -> None:
        """Once points have doubled, drop those that the others make redundant."""
        if self.size < 2 * self._tidy_size + SPARE:
            return
        kept = np.ones(self.size, dtype=bool)
        for i, drop in enumerate(self.beside):
            belief = np.where(self.rows[i] < NEVER, 1 / self.rows[i], 0)
            kept[i] = False
            ratios = ((belief + TINY) * self.rows[kept]).min(axis=1)
            others = np.min(ratios * self.beside[kept], initial=0.0)
            kept[i] = others > drop + REDUNDANT * abs(drop)
        self.keep(kept)
        self._tidy_size = self.size
