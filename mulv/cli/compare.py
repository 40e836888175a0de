"""`mulv compare`."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import tyro

from mulv.bench.compare import read_results, table
from mulv.bench.curves import check_picture, compare


@dataclass(frozen=True)
class CompareOptions:
    """Draw the learning curves of finished runs in one picture, and list what they reached."""

    runs: tyro.conf.Positional[tuple[Path, ...]]
    """Run directories."""
    out: Path = Path("comparison.png")
    """The picture."""


def run(arguments: Sequence[str]) -> int:
    """Print the table and write the picture."""
    options = tyro.cli(CompareOptions, args=list(arguments), prog="mulv compare")
    check_picture(options.out)
    results = read_results(options.runs)
    print("\n".join(table(results)))
    print(f"picture {compare(results, results[0]['task'], options.out)}")
    return 0
