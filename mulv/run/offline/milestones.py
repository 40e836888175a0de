"""Points of a run's history: its end, and where its return was halfway from a random policy's to its last."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from mulv.core.errors import MulvError
from mulv.data import Replay
from mulv.run import checkpoint
from mulv.run.logging import clock_of, read_evaluations

NEAR = 0.25  # tolerance of "halfway", as a share of the difference of final and random return


@dataclass(frozen=True)
class Milestone:
    """A point of a run, the mean return of the evaluation nearest to it, and that of the last evaluation."""

    clock: int
    agent_steps: int
    evaluated: float
    final: float

    def __str__(self) -> str:
        return f"step {self.clock:,}: evaluated {self.evaluated:.1f}, {self.final:.1f} at the end"


def last_milestone(run: Path) -> Milestone:
    """The milestone at the newest checkpoint."""
    return _at_checkpoint(run, _saved(run)[-1])


def find_half_way(run: Path, random: float, *, saved_only: bool) -> Milestone:
    """The milestone where a run's return was halfway from a random policy's (`random`) to its final one.

    With `saved_only` the checkpoint nearest to it, otherwise the first evaluation that reached it.
    """
    history = [float(np.mean(line["returns"])) for line in _history(run)]
    way = history[-1] - random
    if way <= 0:
        raise MulvError(
            f"{run} ended at {history[-1]:.1f}, and random actions get {random:.1f}: it learned nothing"
        )
    half = random + way / 2
    if not saved_only:
        return _milestone(run, next(n for n, mean in enumerate(history) if mean >= half))
    nearest = min(
        (_at_checkpoint(run, step) for step in _saved(run)), key=lambda found: abs(found.evaluated - half)
    )
    if abs(nearest.evaluated - half) > NEAR * way:
        raise MulvError(
            f"{run} kept no checkpoint near half way, which is {half:.1f}: the nearest is {nearest}; "
            "train a run with --keep-checkpoints 20 and a smaller --checkpoint-every"
        )
    return nearest


def rows_until(replay: Replay, milestone: Milestone) -> list[int]:
    """How many rows each lane (environment) of a run's replay had at a milestone."""
    if (replay.counts > replay.layout.capacity).any():
        raise MulvError(f"the replay in {replay.directory} has come round, so that its beginning is lost")
    decisions, rows = milestone.agent_steps // replay.layout.lanes, []
    for lane, count in enumerate(replay.counts):
        taken = np.cumsum(replay.column("step", lane, np.arange(count)) > 0)
        rows.append(int(np.searchsorted(taken, decisions, side="right")))
    return rows


def _at_checkpoint(run: Path, clock: int) -> Milestone:
    lines = _history(run)
    number = min(range(len(lines)), key=lambda n: abs(clock_of(lines[n]) - clock))
    found = _milestone(run, number)
    return Milestone(clock, found.agent_steps, found.evaluated, found.final)


def _milestone(run: Path, number: int) -> Milestone:
    lines = _history(run)
    evaluated, final = (float(np.mean(lines[n]["returns"])) for n in (number, -1))
    return Milestone(clock_of(lines[number]), lines[number]["agent_steps"], evaluated, final)


def _history(run: Path) -> list[dict]:
    lines = read_evaluations(run)
    if not lines:
        raise MulvError(f"{run} was never evaluated, so nobody knows how good its policies are")
    return lines


def _saved(run: Path) -> list[int]:
    steps = checkpoint.saved_steps(run / "checkpoints")
    if not steps:
        raise MulvError(f"{run} has no checkpoint, so there is no policy to collect with")
    return steps
