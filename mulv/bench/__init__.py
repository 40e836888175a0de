"""Comparing runs: figures, statistics, published numbers, the report."""
