"""`mulv theory regret`: episodes needed to solve locks of growing length, with and without the bonus."""

import csv
import dataclasses
import functools
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import matplotlib
import numpy as np
from tqdm import tqdm

matplotlib.use("Agg")
from matplotlib import pyplot as plt
from matplotlib.axes import Axes

from mulv.core.errors import MulvError
from mulv.core.names import lookup
from mulv.run.directory import commit, versions
from mulv.tabular.learner.regret import Curve, LearnerSettings, learn, methods
from mulv.tabular.learner.tables import window_tables
from mulv.tabular.pomdp import POMDP
from mulv.tabular.windows import enumerate_histories
from mulv.tabular.zoo.lock import lock

MAKERS: dict[str, Callable[..., POMDP]] = {"lock": lock}
POINTS = 60  # rows of a curve in the CSV, denser at the beginning
# Colour, line style and marker size: curves of methods that fail equally overlap, and all should be visible.
LOOKS = {"bonus": ("C0", "-", 6), "no-bonus": ("C1", "-", 9), "q-learning": ("C2", "--", 4)}


class Written(NamedTuple):
    """The printed text, and the written record: configuration, numbers of every seed, commit and versions."""

    table: list[str]
    record: dict[str, object]


def write_regret(
    name: str,
    folder: Path,
    *,
    horizons: Sequence[int],
    L: int,
    actions: int,
    episodes: int,
    seeds: int,
    alpha: float,
    window: int | None = None,
    progress: bool = True,
) -> Written:
    """Run all methods, and write regret.csv, regret.json and regret.png in `folder`; windows default to L."""
    maker = lookup("POMDP whose horizon can be varied", name, MAKERS)
    learners = methods(alpha)
    if not horizons or episodes < max(horizons):
        raise MulvError(f"{episodes} episodes: a round has H of them, so at least {max(horizons, default=1)}")
    window = window or L
    pomdps = {H: maker(H=H, L=L, actions=actions) for H in horizons}  # all at once, so that errors come early
    curves = _learn_all(pomdps, learners, window, episodes, seeds, progress)
    config = {
        "pomdp": name,
        "H": [*horizons],
        "L": L,
        "actions": actions,
        "window": window,
        "episodes": episodes,
        "seeds": seeds,
        "learners": {each: _settings(learner) for each, learner in learners.items()},
    }
    record: dict[str, object] = {
        "config": config,
        "curves": summary(curves),
        "commit": commit(),
        "versions": versions(),
    }
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "regret.json").write_text(json.dumps(record, indent=2) + "\n")
    write_csv(curves, folder / "regret.csv")
    figure(folder, folder / "regret.png")
    head = [f"{_title(config)}; episodes to half the optimum, median (least to most)"]
    return Written([*head, *table(curves), f"written to {folder}"], record)


def _title(config: Mapping[str, Any]) -> str:
    sizes = f"L = {config['L']}, {config['actions']} actions, windows of {config['window']}"
    return f"{config['pomdp']}: {sizes}, {config['seeds']} seeds"


def _settings(learner: LearnerSettings) -> dict[str, float]:
    fields = dataclasses.fields(learner.settings)
    return {field.name: np.asarray(getattr(learner.settings, field.name)).item() for field in fields}


def _learn_all(
    pomdps: dict[int, POMDP],
    learners: dict[str, LearnerSettings],
    window: int,
    episodes: int,
    seeds: int,
    progress: bool,
) -> list[Curve]:
    """The curves of every method on every horizon, with a progress bar."""
    total = len(learners) * sum(H * (episodes // H) for H in pomdps)
    quiet = not sys.stderr.isatty()  # few lines in a log file
    curves = []
    with tqdm(total=total, unit="episode", disable=not progress, mininterval=30.0 if quiet else 0.2) as bar:
        for H, pomdp in pomdps.items():
            tables = window_tables(enumerate_histories(pomdp, window, H))
            for name, method in learners.items():
                bar.set_description(f"H={H} {name}")
                curve = learn(
                    tables,
                    name,
                    method,
                    rounds=episodes // H,
                    seeds=seeds,
                    tick=functools.partial(_tick, bar, H),
                )
                curves.append(curve)
    return curves


def _tick(bar: "tqdm[NoReturn]", H: int, rounds: int) -> None:
    bar.update(rounds * H)


def table(curves: list[Curve]) -> list[str]:
    """Lines of a table: episodes until the policy reaches half the optimum, median and range over seeds."""
    names = list(dict.fromkeys(curve.method for curve in curves))
    rows = [["H", "optimum", *names]]
    for H in dict.fromkeys(curve.horizon for curve in curves):
        own = {curve.method: curve for curve in curves if curve.horizon == H}
        rows.append([str(H), f"{own[names[0]].optimum:.3g}", *(_episodes(own[name]) for name in names)])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(f"{cell:>{width}}" for cell, width in zip(row, widths, strict=True)) for row in rows]


def _episodes(curve: Curve) -> str:
    """`1,200 (800 to 2,000)`, or a text that most seeds did not reach it."""
    needed = curve.episodes_to()
    seeds, rounds = curve.values.shape
    limit = rounds * curve.horizon
    done = int(np.isfinite(needed).sum())
    if np.isfinite(middle := np.median(needed)):
        most = f"{needed.max():,.0f}" if done == seeds else f"> {limit:,}"
        return f"{middle:,.0f} ({needed.min():,.0f} to {most})"
    return f"> {limit:,} ({done} of {seeds} seeds)"


def summary(curves: list[Curve]) -> list[dict[str, object]]:
    """The table's numbers, as JSON types; null for a seed that never reached half the optimum."""
    return [
        {
            "method": curve.method,
            "H": curve.horizon,
            "optimum": curve.optimum,
            "episodes": curve.values.shape[1] * curve.horizon,
            "episodes_to_half": [int(n) if np.isfinite(n) else None for n in curve.episodes_to()],
            "final_value_mean": float(curve.values[:, -1].mean()),
            "regret_mean": float(curve.regret[:, -1].mean()),
        }
        for curve in curves
    ]


def write_csv(curves: list[Curve], path: Path) -> Path:
    """Write a row per method, horizon and selected round: mean, minimum and maximum over seeds."""
    spreads = [f"{what}_{which}" for what in ("value", "regret") for which in ("mean", "min", "max")]
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["method", "H", "round", "episodes", *spreads])
        for curve in curves:
            for k in _rounds(curve):
                columns = (curve.values[:, k], curve.regret[:, k])
                spread = (f(c) for c in columns for f in (np.mean, np.min, np.max))
                episodes = (k + 1) * curve.horizon
                row = (curve.method, curve.horizon, k + 1, episodes, *(f"{value:.6g}" for value in spread))
                writer.writerow(row)
    return path


def _rounds(curve: Curve) -> np.ndarray:
    """The rounds of a curve that are written and plotted."""
    last = curve.values.shape[1]
    return np.unique(np.geomspace(1, last, POINTS).round().astype(int)) - 1


def figure(folder: Path, path: Path) -> Path:
    """Plot the regret of every horizon, and the episodes to half the optimum against it, from the files."""
    record = json.loads((folder / "regret.json").read_text())
    with (folder / "regret.csv").open() as file:
        rows = list(csv.DictReader(file))
    horizons = record["config"]["H"]
    columns = min(3, len(horizons) + 1) if len(horizons) != 3 else 4
    lines = -(-(len(horizons) + 1) // columns)
    size = (3.1 * columns, 2.8 * lines + 0.4)
    drawing, grid = plt.subplots(lines, columns, figsize=size, layout="constrained", squeeze=False)
    panels = list(grid.flat)
    for axes, H in zip(panels, horizons, strict=False):
        _regret_panel(axes, H, [row for row in rows if int(row["H"]) == H])
    _growth_panel(panels[len(horizons)], record["curves"], horizons)
    for axes in panels:
        axes.grid(alpha=0.3)
        axes.spines[["top", "right"]].set_visible(False)
        axes.tick_params(which="both", labelsize=7)
    for axes in panels[len(horizons) + 1 :]:
        axes.set_visible(False)
    panels[0].legend(frameon=False, fontsize=8)
    drawing.suptitle(_title(record["config"]), fontsize=10)
    drawing.savefig(path, dpi=120)
    plt.close(drawing)
    return path


def _regret_panel(axes: Axes, H: int, rows: list[dict[str, str]]) -> None:
    for method, (colour, line, _) in LOOKS.items():
        own = [row for row in rows if row["method"] == method]
        k, mean, low, high = (
            [float(row[column]) for row in own]
            for column in ("round", "regret_mean", "regret_min", "regret_max")
        )
        axes.fill_between(k, low, high, color=colour, alpha=0.2, linewidth=0)
        axes.plot(k, mean, line, color=colour, linewidth=1.6, label=method)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_title(f"H = {H}: regret", fontsize=9)
    axes.set_xlabel("round k, of H episodes", fontsize=8)


def _growth_panel(axes: Axes, curves: list[dict[str, Any]], horizons: list[int]) -> None:
    """Plot medians over seeds; a triangle means that most seeds did not get there within their episodes."""
    for method, (colour, line, width) in LOOKS.items():
        own = [curve for curve in curves if curve["method"] == method]
        needed = [[np.inf if n is None else n for n in curve["episodes_to_half"]] for curve in own]
        middle = np.array([np.median(each) for each in needed])
        limit = np.array([curve["episodes"] for curve in own])
        at, done = np.array([curve["H"] for curve in own]), np.isfinite(middle)
        axes.plot(at[done], middle[done], f"o{line}", color=colour, markersize=4, linewidth=1.4)
        axes.plot(at[~done], limit[~done], "^", color=colour, markersize=width)
    axes.set_yscale("log")
    axes.set_xticks(horizons)
    axes.set_title("episodes to half the optimum", fontsize=9)
    axes.set_xlabel("H   (▲: not within these)", fontsize=8)
