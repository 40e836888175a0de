"""Comparing runs: suites, sweeps over them, the store of their results, figures and statistics."""

from mulv.bench.store import load

__all__ = ["load"]
