"""`mulv report`."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import tyro

from mulv.bench.report import write_report


@dataclass(frozen=True)
class ReportOptions:
    """Write one HTML page: learning curves, aggregates with intervals, the paper's table beside ours."""

    directory: tyro.conf.Positional[Path]
    """Where the results are: run directories, or <suite>/<method>.jsonl with a result line each."""
    out: Path = Path("report.html")
    """The page."""


def run(arguments: Sequence[str]) -> int:
    """Write the page."""
    options = tyro.cli(ReportOptions, args=list(arguments), prog="mulv report")
    runs = write_report(options.directory, options.out)
    print(f"page {options.out}: {runs} runs, {options.out.stat().st_size / 1e6:.1f} MB")
    return 0
