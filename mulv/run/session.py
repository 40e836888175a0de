"""An open run: the locked directory, the environments, and a trainer at the first step or at a checkpoint."""

import json
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Self

import gymnasium as gym
import numpy as np

from mulv.agents import algorithm
from mulv.core.errors import MulvError
from mulv.data import Replay, ReplayLayout
from mulv.data.files import written_aside
from mulv.envs import VectorEnv
from mulv.run import checkpoint, compiled, seeding
from mulv.run.branch import read_origin
from mulv.run.config import RunConfig, differences
from mulv.run.counters import Counters
from mulv.run.directory import RunDirectory
from mulv.run.logging import Logger
from mulv.run.loop import Trainer
from mulv.run.offline.dataset import RunData, data_rows, read_data, read_record
from mulv.run.progress import Progress, Watcher
from mulv.run.result import RunResult, run_result
from mulv.run.seeding import Stream

Make = Callable[[], gym.Env]
Say = Callable[[str], None]  # prints one line for the user


@dataclass(frozen=True)
class Outcome:
    """A finished run."""

    directory: Path
    result: RunResult
    state: compiled.Packed
    counters: Counters


def check_same(saved: RunConfig, now: RunConfig, path: Path) -> None:
    """Refuse to resume with another configuration; only `total_steps` may be larger."""
    changes = differences(saved, replace(now, total_steps=saved.total_steps))
    if (now.total_steps or 0) < (saved.total_steps or 0):
        changes += differences(saved, replace(saved, total_steps=now.total_steps))
    if changes:
        lines = "\n  ".join(f"{c.name}: {c.old} in the run, {c.new} now" for c in changes)
        raise MulvError(f"{path} was run with another configuration:\n  {lines}\nstart a new run for these")


class RunSession:
    """A new run, or one resumed from its newest checkpoint; `progress` is as for `train`."""

    def __init__(
        self,
        config: RunConfig,
        path: Path,
        make: Make,
        *,
        resume: bool = False,
        progress: bool | Watcher = True,
        say: Say = lambda line: None,
    ):
        saved = resume and checkpoint.saved_steps(RunDirectory(path).checkpoints)
        data = None if config.data is None or saved else read_data(config, make)
        with ExitStack() as lock, ExitStack() as pieces:  # both are closed if anything below fails
            self._directory = directory = lock.enter_context(RunDirectory(path))
            if resume:
                check_same(directory.read_config(), config, path)
            elif directory.config_file.exists():
                raise MulvError(
                    f"{path} already holds a run; continue it with --resume {path}, or choose another --out"
                )
            envs = VectorEnv.of(
                make,
                config.num_envs,
                lambda lane, episode: seeding.integer(config.seed, Stream.ENV, lane, episode),
                workers=bool(config.env_workers),
                timeout=config.env_timeout,
            )
            pieces.callback(envs.close)
            if saved:
                self.trainer, earlier_seconds = _resume(config, directory, envs, make, say)
            else:
                if resume and not self._directory.initial.exists():
                    say("           there was no checkpoint yet: starting from the beginning")
                self.trainer, earlier_seconds = _begin(config, directory, envs, make, data, say), 0.0
            pieces.callback(self.trainer.logger.close)
            pieces.callback(self.trainer.evaluator.close)
            self.progress = progress if not isinstance(progress, bool) else _bar(self.trainer, progress)
            pieces.callback(self.progress.close)
            self._started = time.perf_counter() - earlier_seconds
            self._lock, self._pieces = lock.pop_all(), pieces.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Close environments and files, then release the directory's lock."""
        with self._lock, self._pieces:
            pass

    @property
    def _seconds(self) -> float:
        return time.perf_counter() - self._started

    def save(self) -> None:
        """Write a checkpoint of the run's present state."""
        trainer = self.trainer
        meta = trainer.state_dict() | {"wall_s": self._seconds}
        clock, keep = trainer.counters.clock, trainer.config.keep_checkpoints
        checkpoint.save(self._directory.checkpoints, clock, trainer.tree, meta, keep=keep)
        trainer.batches.forget()

    def finish(self, vmap_seeds: int = 1) -> Outcome:
        """Close all other files, write result.json, and return the finished run.

        `vmap_seeds` is how many runs trained in this process; it is recorded where that is more than one.
        """
        self._pieces.close()
        counters, config = self.trainer.counters, self.trainer.config
        result = run_result(config, counters, self.trainer.logger.evaluations, wall_s=self._seconds)
        if config.data is not None:
            result["dataset"] = read_record(self._directory)
        if (origin := read_origin(self._directory)) is not None:
            result["branched_from"] = asdict(origin)
        if vmap_seeds > 1:
            result["vmap_seeds"] = vmap_seeds
        with written_aside(self._directory.path / "result.json") as aside:
            aside.write_text(json.dumps(result))
        return Outcome(self._directory.path, result, self.trainer.state, self.trainer.counters)


def _bar(trainer: Trainer, enabled: bool) -> Progress:
    config = trainer.config
    label = f"{config.algo} {config.task}"
    total = config.offline_updates + (config.total_steps or 0)
    return Progress(total, trainer.counters.clock, label, enabled)


def replay_layout(config: RunConfig, envs: VectorEnv, data_rows: int = 0) -> ReplayLayout:
    """A layout with the configured capacity, or just enough rows for a short run (a reset after every step).

    `data_rows`, rows per environment of an initial dataset, are added: all of it stays until the run's own
    steps have filled the rest.
    """
    worst = 2 * ((config.total_steps or 0) // config.repeat + config.num_envs)
    # Rows that may be written after the oldest checkpoint kept: a resumed run may fall back to that one.
    slack = 2 * 2 * -(-config.checkpoint_every // config.repeat) * (config.keep_checkpoints + 1)
    room = (worst, 0) if worst <= config.replay_capacity else (config.replay_capacity, slack)
    layout = ReplayLayout.of(envs.spec, lanes=envs.num_envs, capacity=room[0], slack=room[1])
    return replace(layout, capacity=layout.capacity + data_rows)


def _begin(
    config: RunConfig, directory: RunDirectory, envs: VectorEnv, make: Make, data: RunData | None, say: Say
) -> Trainer:
    """The trainer of a new run, with its dataset (if any) in the replay."""
    agent = algorithm(config.algo).agent(config.agent, envs.spec)
    layout = replay_layout(config, envs, data.survey.rows(envs.num_envs) if data else 0)
    say(f"replay     {layout.nbytes / 1e6:.1f} MB reserved in {directory.replay}")
    replay = Replay.create(directory.replay, layout)
    if data is not None:
        say(f"data       {data.survey}")
        if data.dataset.note:
            say(f"           {data.dataset.note}")
        data.put_into(replay, directory)
    directory.write_config(config)
    trainer = Trainer(config, agent, envs, replay, Logger(directory.path), make, Counters())
    if directory.initial.exists():
        like = compiled.unpack(agent, trainer.state)
        trainer.state = compiled.pack(checkpoint.load(directory.initial, like)[0])
        trainer.starts_trained = True
    return trainer


def _resume(
    config: RunConfig, directory: RunDirectory, envs: VectorEnv, make: Make, say: Say
) -> tuple[Trainer, float]:
    """The trainer at the run's newest checkpoint, and the wall-clock seconds the run had taken by then."""
    agent = algorithm(config.algo).agent(config.agent, envs.spec)
    like = compiled.unpack(agent, compiled.init(agent, seeding.key(config.seed, Stream.INIT)))
    checkpoint.remove_leftovers(directory.checkpoints)
    state, meta, used = checkpoint.load_latest(directory.checkpoints, like)
    counters = Counters(**meta["counters"])
    replay = Replay.open(directory.replay, np.asarray(meta["replay_counts"]))
    replay.verify(meta.get("replay_sums"))
    replay = replay.enlarged(replay_layout(config, envs, data_rows(directory, envs.num_envs)))
    logger = Logger(directory.path, meta["offsets"], counters.clock)
    trainer = Trainer(config, agent, envs, replay, logger, make, counters)
    trainer.starts_trained = directory.initial.exists()
    say(f"resumed    {used}")
    directory.write_config(config)
    if trainer.restore(state, meta):
        say("           it lies within an episode: that one is cut off and another begun")
    return trainer, meta["wall_s"]
