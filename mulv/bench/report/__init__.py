"""One HTML page of all results under a directory: no network, no script, light and dark."""

from mulv.bench.report.page import render, write_report

__all__ = ["render", "write_report"]
