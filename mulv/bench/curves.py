"""Plots of learning curves."""

from collections import defaultdict
from pathlib import Path

import matplotlib
import numpy as np

matplotlib.use("Agg")
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from mulv.bench.lines import axis_of, length_of
from mulv.bench.published import full_state_curves
from mulv.core.errors import MulvError
from mulv.run.result import RunResult


def check_picture(path: Path) -> None:
    """Raise an error if a picture cannot be written to `path`, before any work is done."""
    kinds = sorted(Figure().canvas.get_supported_filetypes())
    if path.suffix.removeprefix(".") not in kinds:
        raise MulvError(f"{path} has no ending of a picture; use one of {', '.join(kinds)}")
    if not path.parent.is_dir():
        raise MulvError(f"there is no directory {path.parent} to write {path.name} in; make it first")


def learning_curve(result: RunResult, path: Path) -> Path:
    """Plot one run: the mean return of each evaluation, and every episode as a dot."""
    steps, returns = np.asarray(axis_of(result)), np.asarray(result["eval_returns"])
    length, unit = length_of(result)
    figure, axes = _axes(unit)
    axes.plot(np.repeat(steps, returns.shape[1]), returns.ravel(), ".", color="C0", alpha=0.25, markersize=4)
    axes.plot(steps, returns.mean(axis=1), color="C0", linewidth=2)
    return _save(
        figure,
        axes,
        f"{result['task']}, {result['method']}, seed {result['seed']}: "
        f"{result['final_mean']:.0f} at {length:,} {unit.split()[-1]}",
        path,
    )


def hidden_values(probe: Path, title: str, path: Path) -> Path:
    """Plot the probe: hidden values of the task against their predictions from the agent's latent."""
    with np.load(probe) as saved:
        hidden, predicted, r2 = saved["hidden"], saved["predicted"], saved["r2"]
    columns = min(4, hidden.shape[1])
    rows = -(-hidden.shape[1] // columns)
    size = (max(5.0, 2.4 * columns), max(3.4, 2.4 * rows))
    figure, grid = plt.subplots(rows, columns, figsize=size, layout="constrained", squeeze=False)
    for i, axes in enumerate(grid.flat):
        if i >= hidden.shape[1]:
            axes.set_visible(False)
            continue
        low, high = np.quantile(hidden[:, i], [0.002, 0.998])
        axes.plot([low, high], [low, high], color="0.7", linewidth=1)
        axes.plot(hidden[:, i], predicted[:, i], ".", markersize=2, alpha=0.4, color="C0")
        axes.set_title(f"hidden {i}: R² {r2[i]:.3f}", fontsize=9)
        axes.set_xlim(low, high)
        axes.set_ylim(low, high)
        axes.tick_params(labelsize=7)
    figure.supxlabel("value in the simulator", fontsize=9)
    figure.supylabel("read off the latent", fontsize=9)
    figure.suptitle(title, fontsize=11)
    figure.savefig(path, dpi=120)
    plt.close(figure)
    return path


def projection_picture(projection: Path, title: str, path: Path) -> Path:
    """Plot the latent projection: transitions coloured by age, those with the highest rewards marked."""
    with np.load(projection) as saved:
        points, share, age, reward = (saved[name] for name in ("points", "share", "age", "reward"))
    figure, axes = plt.subplots(figsize=(5.6, 4.4), layout="constrained")
    x, y = points.T
    dots = axes.scatter(x, y, c=age, s=6, cmap="viridis", vmin=0, vmax=1, linewidths=0)
    figure.colorbar(dots, label="when: 0 is the run's beginning, 1 is now")
    # Rings mark the highest rewards: all of them if rewards are sparse, else the top twentieth.
    best = (reward >= np.quantile(reward, 0.95)) & (reward > reward.min())
    axes.scatter(
        x[best], y[best], s=28, facecolors="none", edgecolors="C3", linewidths=0.8, label="paid best"
    )
    axes.set_xlabel(f"first component, {share[0]:.0%} of the variance")
    axes.set_ylabel(f"second component, {share[1]:.0%}")
    axes.legend(frameon=False, loc="best", fontsize=8)
    return _save(figure, axes, title, path)


def compare(results: list[RunResult], title: str, path: Path) -> Path:
    """Plot several methods on one task: a thin line per seed, a thick one for the mean."""
    figure, axes = _axes(length_of(results[0])[1])
    _draw_methods(axes, results, _methods(results))
    axes.legend(frameon=False)
    return _save(figure, axes, title, path)


def compare_on_tasks(results: list[RunResult], title: str, path: Path, *, published: bool = False) -> Path:
    """Plot several methods on several tasks, one panel per task as in `compare`.

    With `published`, what others reached with the full state is drawn beside them, dashed.
    """
    by_task: dict[str, list[RunResult]] = defaultdict(list)
    for result in results:
        by_task[result["task"]].append(result)
    columns = min(3, len(by_task))
    rows = -(-len(by_task) // columns)
    size = (3.4 * columns, 2.7 * rows)
    figure, grid = plt.subplots(rows, columns, figsize=size, layout="constrained", squeeze=False)
    for axes in grid.flat[len(by_task) :]:
        axes.set_visible(False)
    for axes, (task, runs) in zip(grid.flat, by_task.items(), strict=False):
        _draw_methods(axes, runs, _methods(results))
        if published:
            _draw_published(axes, task)
        axes.set_title(task, fontsize=10)
        axes.grid(alpha=0.3)
        axes.spines[["top", "right"]].set_visible(False)
        axes.tick_params(labelsize=8)
    grid.flat[0].legend(frameon=False, fontsize=8)
    figure.supxlabel(length_of(results[0])[1], fontsize=9)
    figure.supylabel("return of evaluation", fontsize=9)
    figure.suptitle(title, fontsize=11)
    figure.savefig(path, dpi=120)
    plt.close(figure)
    return path


def _methods(results: list[RunResult]) -> list[str]:
    return list(dict.fromkeys(result["method"] for result in results))


def _draw_methods(axes: Axes, results: list[RunResult], methods: list[str]) -> None:
    """Draw each method in its own colour; methods without a result here are left out."""
    for number, method in enumerate(methods):
        runs = [result for result in results if result["method"] == method]
        if not runs:
            continue
        means = np.asarray([np.mean(run["eval_returns"], axis=1) for run in runs])
        steps, colour = axis_of(runs[0]), f"C{number}"
        axes.plot(steps, means.T, color=colour, alpha=0.35, linewidth=0.8)
        seeds = f"{len(runs)} seed" + ("s" if len(runs) > 1 else "")
        axes.plot(steps, means.mean(axis=0), color=colour, linewidth=2.2, label=f"{method} ({seeds})")


def _draw_published(axes: Axes, task: str) -> None:
    """Draw published curves in grey, each named at its last point."""
    points = full_state_curves(task)
    for method in dict.fromkeys(point.method for point in points):
        own = [point for point in points if point.method == method]
        steps, returns = [point.env_steps for point in own], [point.ret for point in own]
        axes.plot(steps, returns, "--.", color="0.55", linewidth=0.8, markersize=4)
        axes.annotate(method, (steps[-1], returns[-1]), fontsize=6, color="0.35")


def _axes(unit: str) -> tuple[Figure, Axes]:
    figure, axes = plt.subplots(figsize=(6.4, 4), layout="constrained")
    axes.set_xlabel(unit)
    axes.set_ylabel("return of evaluation")
    axes.grid(alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes


def _save(figure: Figure, axes: Axes, title: str, path: Path) -> Path:
    axes.set_title(title, fontsize=11)
    figure.savefig(path, dpi=120)
    plt.close(figure)
    return path
