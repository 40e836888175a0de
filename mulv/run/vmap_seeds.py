"""Several seeds of one configuration in one process, whose updates are one `vmap`.

Each run has its own environments, replay, files and checkpoints. When all runs have a round of updates due,
those with the fewest updates do theirs in one call and continue, while the others wait. So runs that were
resumed at different steps catch up with each other, and an error in one run does not end the others.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from mulv.core.errors import MulvError
from mulv.core.types import AnyBatch
from mulv.run import compiled
from mulv.run.config import RunConfig, differences
from mulv.run.interrupts import Interrupted, Interrupts
from mulv.run.loop import Trainer
from mulv.run.progress import Watcher
from mulv.run.seeding import Stream
from mulv.run.session import Make, Outcome, RunSession
from mulv.run.train import check_learnable, complete, environment_of


@dataclass(frozen=True)
class Member:
    """One of several runs whose updates share a `vmap`."""

    config: RunConfig
    path: Path
    resume: bool = False
    progress: bool | Watcher = False


def train_vmapped(
    members: Sequence[Member], *, make: Make | None = None, save_on_signal: bool = True
) -> Iterator[tuple[Member, Outcome | Exception]]:
    """Train runs that differ only in their seed; yields each with its outcome or error when it ends.

    Each run equals the same run under `train`, up to rounding. A signal ends all of them with `Interrupted`.
    """
    for member in members[1:]:
        changed = differences(replace(members[0].config, seed=0), replace(member.config, seed=0))
        if changed:
            raise MulvError(
                f"runs train together that differ in their seed alone; these differ in {changed[0].name}"
            )
    config = members[0].config
    check_learnable(config, make or environment_of(config))
    interrupted: Interrupted | None = None
    with Interrupts(listen=save_on_signal) as interrupts, ExitStack() as stack:
        going: list[_Going] = []
        waiting: list[_Going] = []
        for member in members:
            try:
                going.append(_Going(member, make, interrupts, len(members)))
                stack.callback(going[-1].run.close)
            except Exception as error:
                yield member, error
        while going:
            for each in going:
                end = each.go_on()
                if end is None:
                    waiting.append(each)
                elif isinstance(end, Interrupted):
                    interrupted = end
                else:
                    yield each.member, end
            least = min((each.updates for each in waiting), default=0)
            going = [each for each in waiting if each.updates == least]
            waiting = [each for each in waiting if each.updates > least]
            _learn(going)
    if interrupted is not None:
        raise interrupted


class _Going:
    """A running member, and the batches of its next round of updates."""

    def __init__(self, member: Member, make: Make | None, interrupts: Interrupts, together: int):
        self.member, self._together = member, together
        config = complete(member.config) if make is None else member.config
        make = make or environment_of(config)
        self.run = RunSession(config, member.path, make, resume=member.resume, progress=member.progress)
        self.batches: AnyBatch | None = None  # of the next round of updates
        self.error: Exception | None = None  # raised by the last round of updates
        self._rounds = self.trainer.rounds(self.run.save, interrupts, self.run.progress)

    @property
    def trainer(self) -> Trainer:
        return self.run.trainer

    @property
    def updates(self) -> int:
        return self.trainer.counters.updates

    def go_on(self) -> Outcome | Exception | None:
        """Run until updates is due (None), or to the end; then close the run, return its outcome."""
        try:
            if self.error is not None:
                raise self.error
            self.batches = next(self._rounds, None)
            if self.batches is not None:
                return None
            with self.run:
                return self.run.finish(vmap_seeds=self._together)
        except Exception as error:
            self.run.close()
            return error


def _learn(group: Sequence[_Going]) -> None:
    """Do one round of updates of every run in the group."""
    trainers = [each.trainer for each in group]
    batches = [each.batches for each in group if each.batches is not None]
    try:
        if len(group) == 1:
            trainers[0].learn(batches[0])
        elif group:
            learned = compiled.update_vmapped(
                trainers[0].agent,
                tuple(trainer.state for trainer in trainers),
                tuple(batches),
                tuple(trainer.keys[Stream.UPDATE] for trainer in trainers),
                np.int32(trainers[0].counters.updates),
            )
            for trainer, its_own in zip(trainers, learned, strict=True):
                trainer.take(its_own)
    except Exception as error:  # such as too little device memory for the whole group
        for each in group:
            each.error = error
