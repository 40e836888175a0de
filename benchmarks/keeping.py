"""Where the figures of a benchmark are kept, each with the code and the versions it is of."""

import json
from pathlib import Path
from typing import Any

from mulv.run.directory import commit, versions

RESULTS = Path(__file__).parents[1] / "results"
SPEED = RESULTS / "speed"


def keep(name: str, figures: dict[str, Any], directory: Path = SPEED) -> dict[str, Any]:
    """Write <name>.json; what is in it."""
    kept = figures | {"commit": commit(), "versions": versions()}
    directory.mkdir(parents=True, exist_ok=True)
    (directory / f"{name}.json").write_text(json.dumps(kept, indent=2) + "\n")
    return kept
