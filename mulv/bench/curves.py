"""Learning curves as a picture."""

from pathlib import Path
from typing import Any

import numpy as np


def learning_curve(result: dict[str, Any], path: Path) -> Path:
    """Mean return of each evaluation against environment steps, with every episode as a dot."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    steps = np.asarray(result["eval_env_steps"])
    returns = np.asarray(result["eval_returns"])
    figure, axes = plt.subplots(figsize=(6.4, 4), layout="constrained")
    axes.plot(np.repeat(steps, returns.shape[1]), returns.ravel(), ".", color="C0", alpha=0.25, markersize=4)
    axes.plot(steps, returns.mean(axis=1), color="C0", linewidth=2)
    axes.set_xlabel("environment steps")
    axes.set_ylabel("return")
    axes.set_title(
        f"{result['task']}, {result['method']}, seed {result['seed']}: "
        f"{result['final_mean']:.0f} at {result['env_steps']:,} steps",
        fontsize=11,
    )
    axes.grid(alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=120)
    plt.close(figure)
    return path
