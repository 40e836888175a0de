"""Solve a POMDP: exactly over finitely many decisions, by closing bounds over a discounted eternity."""

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from mulv.core.errors import MulvError
from mulv.tabular.files.alpha import AlphaVectors
from mulv.tabular.pomdp import POMDP
from mulv.tabular.solver.finite import finite_value
from mulv.tabular.solver.initial import floor
from mulv.tabular.solver.search import Search

LARGEST = 2**27  # numbers in alpha vectors over all states: a gigabyte


@dataclass(frozen=True)
class Bounds:
    """How far a search has come."""

    seconds: float
    lower: float
    upper: float
    vectors: int
    beliefs: int

    @property
    def gap(self) -> float:
        """Upper bound less lower bound."""
        return self.upper - self.lower


@dataclass(frozen=True, eq=False)
class Solution:
    """Bounds of the optimal value at the start, and the plan that has at least the lower one."""

    bounds: Bounds
    search: Search | None  # None for finitely many decisions, whose plan changes with the step
    horizon: int | None  # how many those are

    def alpha_vectors(self) -> AlphaVectors:
        """Over all states. Outside the frame that it was made in, a vector is what no plan falls short of."""
        if self.search is None:
            raise MulvError("a plan for finitely many decisions changes with the step: vectors have none")
        pomdp, each = self.search.pomdp, [vectors.kept() for vectors in self.search.lower]
        count = sum(len(actions) for _, actions in each)
        if count * pomdp.states > LARGEST:
            raise MulvError(
                f"{count:,} vectors over {pomdp.states:,} states are more than {LARGEST:,} numbers; "
                "ask for fewer --seconds or a larger --precision"
            )
        values, first = np.full((count, pomdp.states), floor(pomdp)), 0
        for frame, (rows, _) in zip(self.search.frames.frames, each, strict=True):
            values[first : first + len(rows), frame.states] = rows
            first += len(rows)
        return AlphaVectors(values, np.concatenate([actions for _, actions in each]))


def solve(
    pomdp: POMDP,
    *,
    precision: float = 1e-3,
    seconds: float = 120.0,
    horizon: int | None = None,
    watch: Callable[[Bounds], None] = lambda bounds: None,
) -> Solution:
    """Until the bounds are `precision` apart or `seconds` are over; exactly if there is a horizon.

    `watch` is told the bounds before the first trial and after each.
    """
    if precision <= 0 or seconds <= 0:
        raise MulvError(f"precision is {precision} and seconds {seconds}; both must be positive")
    began = time.perf_counter()
    horizon = pomdp.horizon if horizon is None else horizon
    if horizon is not None:
        value, beliefs = finite_value(pomdp, horizon)
        return Solution(Bounds(time.perf_counter() - began, value, value, 0, beliefs), None, horizon)
    if not 0 < pomdp.discount < 1:
        raise MulvError(
            f"discount is {pomdp.discount}; without a horizon it must be between 0 and 1: "
            "give --gamma, or --horizon for so many decisions"
        )
    search = Search(pomdp)
    while True:
        lower, upper = search.bounds()
        vectors = sum(each.size for each in search.lower)
        bounds = Bounds(time.perf_counter() - began, lower, upper, vectors, search.beliefs)
        watch(bounds)
        if bounds.gap <= precision or bounds.seconds >= seconds:
            return Solution(bounds, search, None)
        search.trial(precision)
