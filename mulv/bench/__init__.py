"""Comparison of runs: suites, sweeps, the store of results, statistics, published numbers, the report."""

from mulv.bench.store import load

__all__ = ["load"]
