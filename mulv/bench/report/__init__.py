"""One HTML page of all results under a directory; it needs no network and no script."""

from mulv.bench.report.page import render, write_report

__all__ = ["render", "write_report"]
