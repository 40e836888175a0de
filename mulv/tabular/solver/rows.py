"""A growing table whose readers remember how far they have read."""

import numpy as np


class GrowingRows:
    """Rows, each with a number beside it, that are appended one by one; `keep` drops all others.

    A reader keeps `total`, the number of rows ever appended; `unread` says where the rows begin that were
    appended since. After rows were dropped, everybody reads all of them again.
    """

    def __init__(self, width: int):
        self._rows, self._beside = np.empty((4, width)), np.empty(4)
        self.size = 0
        self.total = 0
        self._dropped_at = 0  # `total` when rows were last dropped

    @property
    def rows(self) -> np.ndarray:
        """(size, width)."""
        return self._rows[: self.size]

    @property
    def beside(self) -> np.ndarray:
        """(size,)."""
        return self._beside[: self.size]

    def append(self, row: np.ndarray, beside: float) -> None:
        """Add a row."""
        if self.size == len(self._rows):
            self._rows = np.concatenate([self._rows, np.empty_like(self._rows)])
            self._beside = np.concatenate([self._beside, np.empty_like(self._beside)])
        self._rows[self.size], self._beside[self.size] = row, beside
        self.size += 1
        self.total += 1

    def unread(self, read: int) -> int:
        """The first place that a reader of `read` rows has not seen."""
        return 0 if read < self._dropped_at else self.size - (self.total - read)

    def keep(self, kept: np.ndarray) -> None:
        """Only the rows where `kept` (size,) is true."""
        room = np.empty((4, self._rows.shape[1]))
        self._rows = np.concatenate([self.rows[kept], room])
        self._beside = np.concatenate([self.beside[kept], np.empty(4)])
        self.size, self._dropped_at = int(np.count_nonzero(kept)), self.total
