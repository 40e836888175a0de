"""The table of docs/critic-truth.md, made of results/critic-truth: one line a critic, means over seeds.

The test of that page compares the two.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

RESULTS = Path(__file__).parents[1] / "results" / "critic-truth"
HEADER = (
    "| critic | seeds | by state | pooled | best above mean | values | bias | RMSE |\n"
    "|---|---|---|---|---|---|---|---|"
)


def read(directory: Path = RESULTS) -> dict[str, list[dict[str, Any]]]:
    """Results by the name of their critic: a file's name without its seed."""
    found: dict[str, list[dict[str, Any]]] = {}
    for path in sorted(directory.glob("*.json")):
        found.setdefault(path.stem.rpartition("-seed-")[0], []).append(json.loads(path.read_text()))
    return found


def line(name: str, seeds: Sequence[dict[str, Any]]) -> str:
    """After the last update. An interval over states is the mean of the seeds' intervals."""
    last = [result["figures"][-1]["lower"] for result in seeds]

    def mean(figure: str) -> float:
        return float(np.mean([each[figure] for each in last]))

    def with_interval(figure: str) -> str:
        low, high = np.mean([each[f"{figure}_interval"] for each in last], axis=0)
        return f"{mean(figure):.2f} [{low:.2f}, {high:.2f}]"

    cells = [
        name,
        str(len(seeds)),
        with_interval("state_correlation"),
        with_interval("advantage_correlation"),
        with_interval("best_above_mean"),
        f"{mean('value_correlation'):.2f}",
        f"{mean('value_bias'):+.1f}",
        f"{mean('value_rmse'):.1f}",
    ]
    return f"| {' | '.join(cells)} |"


def table(directory: Path = RESULTS) -> str:
    """Markdown."""
    return "\n".join([HEADER, *(line(name, seeds) for name, seeds in read(directory).items())])


if __name__ == "__main__":
    print(table())
