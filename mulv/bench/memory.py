"""The output of `mulv memory`: a table, a picture, and a JSON file with all numbers."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np

matplotlib.use("Agg")
from matplotlib import pyplot as plt

from mulv.data.files import written_aside
from mulv.run.diagnostics.decodability.measure import Measurement
from mulv.run.diagnostics.decodability.recommend import DECODED, MARGIN, Recommendation
from mulv.run.diagnostics.decodability.scores import LEVEL, Estimate, Score
from mulv.run.directory import commit, versions

LOWEST = -0.1  # lower R² are drawn at this height


def table(found: Measurement) -> list[str]:
    """A line per memory: mean and worst R² of hidden entries, and R² of the reward, with intervals."""
    rows = [["L", "mean", "worst", "worst entry", "reward"]]
    for label, score in _labelled(found):
        reward = "-" if score.reward is None else _shown(score.reward)
        worst = (_shown(score.worst), found.names[score.worst_entry])
        rows.append([label, _shown(score.mean), *worst, reward])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            f"{cell:<{width}}" if i == 3 else f"{cell:>{width}}"
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def record(found: Measurement, advice: Recommendation, config: Mapping[str, Any]) -> dict[str, Any]:
    """All numbers, with the configuration that reproduces them."""
    return {
        "config": {**config, "margin": MARGIN, "decoded": DECODED, "level": LEVEL},
        "hidden": [*found.names],
        "constant": [*found.constant],
        "fitted_rows": found.fitted_rows,
        "tested_rows": found.tested_rows,
        "tested_episodes": found.tested_episodes,
        "windows": {label: _figures(score, found) for label, score in _labelled(found) if label != "GRU"},
        "gru": None if found.gru is None else _figures(found.gru, found),
        "recommendation": asdict(advice),
        "commit": commit(),
        "versions": versions(),
    }


def write(
    folder: Path, found: Measurement, advice: Recommendation, config: Mapping[str, Any], title: str
) -> dict[str, Any]:
    """Write memory.json and memory.png in `folder`; returns the record."""
    figures = record(found, advice, config)
    folder.mkdir(parents=True, exist_ok=True)
    with written_aside(folder / "memory.json") as aside:
        aside.write_text(json.dumps(figures, indent=1) + "\n")
    picture(found, advice, title, folder / "memory.png")
    return figures


def picture(found: Measurement, advice: Recommendation, title: str, path: Path) -> Path:
    """Plot R² of every hidden entry and of the reward against L, with the GRU's at the right."""
    lengths = [*found.windows]
    beyond = 2 * max(lengths)  # x-position of the GRU
    figure, axes = plt.subplots(figsize=(8, 4.4), layout="constrained")
    reward = [score.reward for score in found.windows.values()]
    series = [(name, [s.entries[i] for s in found.windows.values()]) for i, name in enumerate(found.names)]
    at_gru = [] if found.gru is None else [*found.gru.entries, found.gru.reward]
    if reward[0] is not None:
        series.append(("reward of the last step", [each for each in reward if each is not None]))
    colours = plt.get_cmap("viridis")(np.linspace(0, 0.95, max(len(found.names), 2)))
    for i, (name, estimates) in enumerate(series):
        is_reward = i == len(found.names)
        colour = "C3" if is_reward else colours[i]
        values = np.maximum([estimate.r2 for estimate in estimates], LOWEST)
        axes.plot(lengths, values, "--o" if is_reward else "-o", color=colour, markersize=3.5, label=name)
        low, high = (np.maximum([getattr(e, end) for e in estimates], LOWEST) for end in ("low", "high"))
        axes.fill_between(lengths, low, high, color=colour, alpha=0.15, linewidth=0)
        if at_gru and (of_gru := at_gru[i]) is not None:
            axes.plot(beyond, max(of_gru.r2, LOWEST), "D", color=colour, markersize=5)
    axes.axhline(DECODED, color="0.6", linewidth=0.8, linestyle=":")
    if advice.window is not None:
        axes.axvline(advice.window, color="0.3", linewidth=1.2, label=f"recommended: {advice.window}")
    elif at_gru:
        axes.axvline(beyond, color="0.3", linewidth=1.2, label="recommended: a recurrent memory")
    axes.set_xscale("log", base=2)
    ticks = [*lengths, beyond] if at_gru else lengths
    axes.set_xticks(ticks, [*map(str, lengths), "GRU"] if at_gru else [*map(str, lengths)])
    axes.minorticks_off()
    axes.set_ylim(top=1.02)
    axes.set_xlabel("L: observations in the window")
    axes.set_ylabel("R² on test episodes")
    axes.grid(alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_title(title, fontsize=11)
    figure.legend(loc="outside right upper", frameon=False, fontsize=8)
    with written_aside(path) as aside:
        figure.savefig(aside, dpi=120)
    plt.close(figure)
    return path


def _labelled(found: Measurement) -> list[tuple[str, Score]]:
    windows = [(str(L), score) for L, score in found.windows.items()]
    return windows if found.gru is None else [*windows, ("GRU", found.gru)]


def _shown(estimate: Estimate) -> str:
    return f"{estimate.r2:.3f} [{estimate.low:.3f}, {estimate.high:.3f}]"


def _figures(score: Score, found: Measurement) -> dict[str, Any]:
    """A score as JSON types, rounded to four digits."""

    def rounded(estimate: Estimate) -> dict[str, float]:
        return {name: round(value, 4) for name, value in estimate._asdict().items()}

    return {
        "mean": rounded(score.mean),
        "worst": rounded(score.worst),
        "worst_entry": found.names[score.worst_entry],
        "entries": [rounded(entry) for entry in score.entries],
        "reward": None if score.reward is None else rounded(score.reward),
    }
