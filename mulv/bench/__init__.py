"""Comparing runs: figures, and later suites and statistics."""
