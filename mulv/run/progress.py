"""What a person watching a run sees."""

import sys
import time
from typing import Protocol

import numpy as np
from tqdm import tqdm

from mulv.run.evaluation import Evaluation


class Watcher(Protocol):
    """Somebody who is told how a run gets on."""

    def step(self, env_steps: int, last_return: float | None) -> None:
        """The run has come to `env_steps`."""

    def pretrained(self, updates: int, total: int) -> None:
        """So many of the updates are done that no step comes between."""

    def evaluated(self, evaluation: Evaluation) -> None:
        """An evaluation is done."""

    def close(self) -> None:
        """The run ends here, finished or not."""


class Progress:
    """A bar with steps, time left, the last episode's return and the last evaluation's mean."""

    def __init__(self, total: int, start: int, label: str, enabled: bool):
        quiet = not sys.stderr.isatty()
        self._bar = tqdm(
            total=total,
            initial=start,
            desc=label,
            unit="step",
            disable=not enabled,
            mininterval=30.0 if quiet else 0.2,  # a log file wants few lines
            dynamic_ncols=not quiet,
            ncols=110 if quiet else None,
            bar_format="{desc} {percentage:3.0f}%|{bar}| {n_fmt}/{total_fmt} "
            "[{elapsed}<{remaining}, {rate_fmt}{postfix}]",
        )
        self._shown: dict[str, str] = {}
        self._told = -float("inf")  # when pretraining was last shown

    def step(self, env_steps: int, last_return: float | None) -> None:
        """The run has come to `env_steps`."""
        if last_return is not None:
            self._shown["return"] = f"{last_return:.0f}"
        if self._bar.disable:
            return
        self._bar.set_postfix(self._shown, refresh=False)
        self._bar.update(env_steps - self._bar.n)

    def pretrained(self, updates: int, total: int) -> None:
        """The bar stands for a while: what it waits for."""
        self._shown["pretraining"] = f"{updates}/{total}"
        if updates >= total:
            del self._shown["pretraining"]
        if self._bar.disable:
            return
        now = time.monotonic()
        due = now - self._told >= self._bar.mininterval  # tqdm asks only as its steps go on
        self._bar.set_postfix(self._shown, refresh=due)
        self._told = now if due else self._told

    def evaluated(self, evaluation: Evaluation) -> None:
        """An evaluation is done."""
        self._shown["eval"] = f"{np.mean(evaluation.returns):.0f}"
        self._bar.set_postfix(self._shown, refresh=True)

    def close(self) -> None:
        """Leave the bar as it is."""
        self._bar.close()
