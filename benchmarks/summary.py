"""The tables of README and docs, from results/.

python benchmarks/summary.py

Scores are 0 at random actions (results/random, made by random_policy.py) and 1 at the baseline.
"""

from collections import defaultdict
from pathlib import Path

import numpy as np

from mulv.bench.published import random_return
from mulv.bench.statistics import estimate, interquartile_mean, t_half_width
from mulv.bench.store import read_store
from mulv.run.result import RunResult as Result

ROOT = Path(__file__).parents[1]


def lines(suite: str) -> list[Result]:
    """A suite's result lines."""
    return [result for result in read_store(ROOT / "results") if result["suite"] == suite]


def finals(results: list[Result]) -> dict[str, dict[str, list[float]]]:
    """method, task: final means in the order of their seeds."""
    table: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for result in sorted(results, key=lambda r: r["seed"]):
        table[result["method"]][result["task"]].append(result["final_mean"])
    return table


def interval(values: list[float]) -> str:
    """Mean and half-width of its 95 % t-interval."""
    if len(values) < 2:
        return f"{values[0]:.0f}"
    return f"{np.mean(values):.0f} ± {t_half_width(np.asarray(values)):.0f}"


def comparison(suite: str, ours: str, baseline: str) -> None:
    """Returns by task, and the interquartile mean of scores where `baseline` is 1 and random actions 0."""
    table = finals(lines(suite))
    tasks = [task for task in table[ours] if task in table[baseline]]
    if not tasks:
        return
    print(f"\n| {suite} | {baseline} | {ours} | seeds of {ours} | score |\n|---|---|---|---|---|")
    scores: dict[str, list[float]] = {}
    for task in tasks:
        floor, one = random_return(task), float(np.mean(table[baseline][task]))
        assert floor is not None, f"benchmarks/random_policy.py has not measured {task}"
        scores[task] = [(value - floor) / (one - floor) for value in table[ours][task]]
        seeds = ", ".join(f"{value:.0f}" for value in table[ours][task])
        row = (task, interval(table[baseline][task]), interval(table[ours][task]), seeds)
        print(f"| {' | '.join(row)} | {np.mean(scores[task]):.2f} |")
    by_task = [np.asarray(values) for values in scores.values()]
    iqm, low, high = estimate(interquartile_mean, by_task, rng=np.random.default_rng(0), samples=5000)
    print(f"\nIQM of scores: {iqm:.2f} [{low:.2f}, {high:.2f}]")


def solving(suite: str, solved: float, tasks: str, decimals: int = 0) -> None:
    """Of such tasks and each method: final returns, and steps after which every evaluation was `solved`."""
    print(f"\n| {suite} | method | final returns | solved for good after steps |\n|---|---|---|---|")
    found: dict[tuple[str, str], list[Result]] = defaultdict(list)
    for line in sorted(lines(suite), key=lambda line: line["seed"]):
        if line["task"].startswith(tasks):
            found[line["task"], line["method"]].append(line)
    for (task, method), runs in sorted(found.items()):
        returns = ", ".join(f"{run['final_mean']:.{decimals}f}" for run in runs)
        steps = ", ".join(_for_good(run, solved) for run in runs)
        print(f"| {task} | {method} | {returns} | {steps} |")


def _for_good(run: Result, solved: float) -> str:
    means = [np.mean(returns) for returns in run["eval_returns"]]
    below = [i for i, mean in enumerate(means) if mean < solved]
    first = below[-1] + 1 if below else 0
    return f"{run['eval_env_steps'][first]:,}" if first < len(means) else "never"


def ablations(suite: str) -> None:
    """Final returns of each variant, best first."""
    table = {method: next(iter(tasks.values())) for method, tasks in finals(lines(suite)).items()}
    if not table:
        return
    print(f"\n| {suite} | mean | seeds |\n|---|---|---|")
    for method, values in sorted(table.items(), key=lambda item: -np.mean(item[1])):
        print(f"| {method} | {np.mean(values):.0f} | {', '.join(f'{v:.0f}' for v in values)} |")


def returns(suite: str) -> None:
    """Of each task and method: mean and interval of final returns, and its seeds."""
    print(f"\n| {suite} | method | mean | seeds |\n|---|---|---|---|")
    table = finals(lines(suite))
    for task in sorted({task for tasks in table.values() for task in tasks}):
        for method in table:
            values = table[method][task]
            print(f"| {task} | {method} | {interval(values)} | {', '.join(f'{v:.0f}' for v in values)} |")


def main() -> None:
    comparison("quick", "mulv", "sac")
    comparison("positions-30k", "mulv", "sac")
    for ours in ("mulv/gamma-0.99", "mulv/fourier", "mulv/fourier-elbo-1", "mulv"):
        comparison("positions-30k", ours, "sac/gamma-0.99")
    ablations("ablations-20k")
    solving("exploration", solved=1.0, tasks="Lock", decimals=2)
    solving("exploration", solved=90, tasks="MountainCar")
    solving("exploration", solved=800, tasks="ball_in_cup")
    solving("exploration", solved=600, tasks="pendulum-swingup")
    returns("offline")
    returns("offline-expert")
    solving("pixels-20k", solved=-250, tasks="Pendulum-px")


if __name__ == "__main__":
    main()
