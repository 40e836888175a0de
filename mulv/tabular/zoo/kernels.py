"""From what happens in one state to sparse matrices."""

from collections.abc import Callable, Iterable

import numpy as np
from scipy.sparse import coo_array, csr_array

Outcomes = Iterable[tuple[int, float]]  # where to, with which probability; a place may come up twice


def kernel(rows: int, columns: int, outcomes: Callable[[int], Outcomes]) -> csr_array:
    """(rows, columns) with the outcomes of every row; those of one place are added up."""
    entries = [(row, column, p) for row in range(rows) for column, p in outcomes(row)]
    row, column, p = zip(*entries, strict=True)
    return coo_array((np.asarray(p, float), (row, column)), shape=(rows, columns)).tocsr()


def points(places: Iterable[int], columns: int) -> csr_array:
    """Row i is at `places[i]` for certain."""
    places = np.asarray(list(places))
    return csr_array((np.ones(len(places)), places, np.arange(len(places) + 1)), shape=(len(places), columns))
