"""Where the figures of a benchmark are kept: results/speed, each with the code and the versions it is of."""

import json
from pathlib import Path
from typing import Any

from mulv.run.directory import commit, versions

SPEED = Path(__file__).parents[1] / "results" / "speed"


def keep(name: str, figures: dict[str, Any]) -> dict[str, Any]:
    """Write results/speed/<name>.json; what is in it."""
    kept = figures | {"commit": commit(), "versions": versions()}
    SPEED.mkdir(parents=True, exist_ok=True)
    (SPEED / f"{name}.json").write_text(json.dumps(kept, indent=2) + "\n")
    return kept
