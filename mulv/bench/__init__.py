"""Comparing runs: suites, sweeps, the store of their results, statistics, published numbers, the report."""

from mulv.bench.store import load

__all__ = ["load"]
