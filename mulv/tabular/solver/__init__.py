"""Planning with a known POMDP: the reference that learned policies are measured against."""

from mulv.tabular.solver.policy import AlphaPolicy
from mulv.tabular.solver.solve import Bounds, Solution, solve

__all__ = ["AlphaPolicy", "Bounds", "Solution", "solve"]
