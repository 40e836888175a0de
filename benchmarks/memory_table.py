"""The tables of docs/memory.md from results/memory/*.json: `python benchmarks/memory_table.py`."""

import json
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[1] / "results/memory"
_GYMNASIUM = ("Pendulum-P", "HalfCheetah-P", "Hopper-P", "Walker-P")
TASKS = (*_GYMNASIUM, "cheetah-run-P", "walker-run-P", "hopper-hop-P")
POLICY = "HalfCheetah-P-policy"


def read(name: str) -> dict[str, Any]:
    """The record of one measurement."""
    return json.loads((FOLDER / f"{name}.json").read_text())


def overview() -> list[str]:
    """A row for each task: mean and worst R² of some windows and of the GRU, and the recommended window."""
    lengths = [*read(TASKS[0])["windows"]]
    lines = [_row(["task", *(f"L = {L}" for L in lengths), "GRU", "worst entry of the GRU", "recommended"])]
    lines.append("|---" * (len(lengths) + 4) + "|")
    for task in TASKS:
        record = read(task)
        memories = [*(record["windows"][L] for L in lengths), record["gru"]]
        cells = [f"{m['mean']['r2']:.2f}, {m['worst']['r2']:.2f}" for m in memories]
        lines.append(_row([task, *cells, record["gru"]["worst_entry"], _recommended(record)]))
    return lines


def entries(name: str) -> list[str]:
    """A row for each memory of one measurement: R² of every hidden entry and of the reward."""
    record = read(name)
    lines = [_row(["L", *record["hidden"], "reward"]), "|---" * (len(record["hidden"]) + 2) + "|"]
    for label, score in [*record["windows"].items(), ("GRU", record["gru"])]:
        cells = [f"{each['r2']:.2f}" for each in [*score["entries"], score["reward"]]]
        lines.append(_row([label, *cells]))
    return lines


def _recommended(record: dict[str, Any]) -> str:
    window = record["recommendation"]["window"]
    return "recurrent" if window is None else str(window)


def _row(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |"


if __name__ == "__main__":
    for part in (overview(), entries("HalfCheetah-P"), entries(POLICY)):
        print("\n".join([*part, ""]))
