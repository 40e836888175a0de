"""Progress of a run: the interface for callbacks, and the progress bar."""

import sys
import time
from typing import Protocol

import numpy as np
from tqdm import tqdm

from mulv.run.evaluation import Evaluation


class Watcher(Protocol):
    """Callbacks that a run calls as it advances."""

    def step(self, env_steps: int, last_return: float | None) -> None:
        """Called after every step; `last_return` is that of the last finished episode."""

    def pretrained(self, updates: int, total: int) -> None:
        """Called after every round of pretraining: `updates` of `total` are done."""

    def evaluated(self, evaluation: Evaluation) -> None:
        """Called after every evaluation."""

    def close(self) -> None:
        """Called when the run ends, finished or not."""


class Progress:
    """A progress bar with steps, time left, the last episode's return and the last evaluation's mean."""

    def __init__(self, total: int, start: int, label: str, enabled: bool):
        quiet = not sys.stderr.isatty()
        self._bar = tqdm(
            total=total,
            initial=start,
            desc=label,
            unit="step",
            disable=not enabled,
            mininterval=30.0 if quiet else 0.2,  # few lines in a log file
            dynamic_ncols=not quiet,
            ncols=110 if quiet else None,
            bar_format="{desc} {percentage:3.0f}%|{bar}| {n_fmt}/{total_fmt} "
            "[{elapsed}<{remaining}, {rate_fmt}{postfix}]",
        )
        self._shown: dict[str, str] = {}
        self._told = -float("inf")  # when pretraining was last shown

    def step(self, env_steps: int, last_return: float | None) -> None:
        """Advance the bar to `env_steps`."""
        if last_return is not None:
            self._shown["return"] = f"{last_return:.0f}"
        if self._bar.disable:
            return
        self._bar.set_postfix(self._shown, refresh=False)
        self._bar.update(env_steps - self._bar.n)

    def pretrained(self, updates: int, total: int) -> None:
        """Show the updates of pretraining beside the bar, which does not advance meanwhile."""
        self._shown["pretraining"] = f"{updates}/{total}"
        if updates >= total:
            del self._shown["pretraining"]
        if self._bar.disable:
            return
        now = time.monotonic()
        due = now - self._told >= self._bar.mininterval  # tqdm checks this only when its count advances
        self._bar.set_postfix(self._shown, refresh=due)
        self._told = now if due else self._told

    def evaluated(self, evaluation: Evaluation) -> None:
        """Show the evaluation's mean return."""
        self._shown["eval"] = f"{np.mean(evaluation.returns):.0f}"
        self._bar.set_postfix(self._shown, refresh=True)

    def close(self) -> None:
        """Close the bar, which stays visible."""
        self._bar.close()
