"""What a person watching a solver sees: a line whenever the bounds have closed visibly, and a bar."""

import math
import sys
from typing import Self

from tqdm import tqdm

from mulv.tabular.solver.solve import Bounds

CLOSED = 0.5  # a line is worth printing when the gap is this share of the last line's


class Progress:
    """The bar is full when the gap, by its logarithm, or the time has come to its end."""

    def __init__(self, precision: float, seconds: float):
        self._precision, self._seconds = precision, seconds
        self._first = self._shown = math.inf
        quiet = not sys.stderr.isatty()
        self._say = print if quiet else tqdm.write
        self._bar = tqdm(
            total=100,
            desc="solving",
            mininterval=30.0 if quiet else 0.2,  # a log file wants few lines
            dynamic_ncols=not quiet,
            ncols=110 if quiet else None,
            bar_format="{desc} {percentage:3.0f}%|{bar}| {elapsed}{postfix}",
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._bar.close()

    def __call__(self, bounds: Bounds) -> None:
        """The search has come so far."""
        if self._first == math.inf:
            self._first = max(bounds.gap, self._precision)
            self._say(f"{'seconds':>8}{'lower':>12}{'upper':>12}{'gap':>12}{'vectors':>9}{'beliefs':>9}")
        ended = bounds.gap <= self._precision or bounds.seconds >= self._seconds
        if bounds.gap <= CLOSED * self._shown or ended:
            self._shown = bounds.gap
            figures = f"{bounds.lower:12.4f}{bounds.upper:12.4f}{bounds.gap:12.4f}"
            self._say(f"{bounds.seconds:8.1f}{figures}{bounds.vectors:9d}{bounds.beliefs:9d}")
        self._bar.set_postfix_str(f"gap {bounds.gap:.4g}", refresh=False)
        self._bar.update(100 * self._share(bounds) - self._bar.n)

    def _share(self, bounds: Bounds) -> float:
        """Of the way that is done, between 0 and 1."""
        whole = math.log(self._first / self._precision)
        gap = max(bounds.gap, self._precision)
        closed = 1.0 if whole == 0 else math.log(self._first / gap) / whole
        return min(max(closed, bounds.seconds / self._seconds, 0.0), 1.0)
