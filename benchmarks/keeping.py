"""Where the figures of a benchmark are kept, each with the code and the versions it is of."""

import json
import sys
from pathlib import Path
from typing import Any

from mulv.run.directory import PACKAGE, commit, versions

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "results"
SPEED = RESULTS / "speed"
COMMIT = commit()  # before anything is measured: the tree may be at another one by the end


def check_tree(measured: Path = PACKAGE.parent) -> None:
    """End the benchmark of one work tree that would measure the mulv of another."""
    if measured != ROOT:
        sys.exit(f"mulv is of {measured}, and this benchmark of {ROOT}; start it with PYTHONPATH={ROOT}")


def keep(name: str, figures: dict[str, Any], directory: Path = SPEED) -> dict[str, Any]:
    """Write <name>.json; what is in it."""
    kept = figures | {"commit": COMMIT, "versions": versions()}
    directory.mkdir(parents=True, exist_ok=True)
    (directory / f"{name}.json").write_text(json.dumps(kept, indent=2) + "\n")
    return kept


check_tree()
