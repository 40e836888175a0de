"""Start a run or take it up again: builds the pieces, hands them to the loop, saves and restores."""

import json
import os
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np

from mulv.agents import algorithm
from mulv.core.errors import MulvError
from mulv.data import Replay, ReplayLayout
from mulv.envs import Lanes, make_env, preflight, resolve
from mulv.run import checkpoint, compiled, seeding
from mulv.run.config import RunConfig, config_hash, differences, to_json
from mulv.run.dataset import Data, data_rows, read_data, read_record
from mulv.run.directory import RunDirectory, commit, versions
from mulv.run.interrupts import Interrupts
from mulv.run.logging import Logger
from mulv.run.loop import Counters, Trainer
from mulv.run.progress import Progress, Watcher
from mulv.run.seeding import Stream

Say = Callable[[str], None]  # tells a person one line


@dataclass(frozen=True)
class Outcome:
    """A finished run."""

    directory: Path
    result: dict[str, Any]


def complete(config: RunConfig) -> RunConfig:
    """The configuration with nothing left to default."""
    usual = 0 if config.offline_updates else resolve(config.task, config.keep).env_steps
    total = usual if config.total_steps is None else config.total_steps
    length = config.offline_updates + total
    every = max(1, length // 20) if config.eval_every is None else config.eval_every
    return replace(config, total_steps=total, eval_every=every)


def check_same(saved: RunConfig, now: RunConfig, path: Path) -> None:
    """Refuse to resume under another configuration; only more steps are allowed."""
    lines = differences(saved, replace(now, total_steps=saved.total_steps))
    if (now.total_steps or 0) < (saved.total_steps or 0):
        lines += differences(saved, replace(saved, total_steps=now.total_steps))
    if lines:
        changes = "\n  ".join(lines)
        raise MulvError(f"{path} was run with another configuration:\n  {changes}\nstart a new run for these")


def train(
    config: RunConfig,
    path: Path,
    *,
    make: Callable[[], gym.Env] | None = None,
    resume: bool = False,
    progress: bool | Watcher = True,
    save_on_signal: bool = True,
    say: Say = lambda line: None,
) -> Outcome:
    """Train on `config.data`, if any, then to `config.total_steps`, or on from the run's newest checkpoint.

    `make` builds the environment where `config.task` does not name one. `progress` is whether to show a
    bar, or who else is told. A checkpoint saved on a signal mostly lies within an episode, so that what is
    resumed from it is not the run that was never stopped; without `save_on_signal` there is none.
    """
    if make is None:
        config = complete(config)
        build: Callable[[], gym.Env] = lambda: make_env(config.task, config.keep, config.action_repeat)  # noqa: E731
    else:
        build = make
    preflight(build, config.env_timeout)
    saved = resume and checkpoint.saved_steps(RunDirectory(path).checkpoints)
    data = None if config.data is None or saved else read_data(config, build)
    with RunDirectory(path) as directory, Interrupts(listen=save_on_signal) as interrupts:
        if resume:
            check_same(directory.read_config(), config, path)
        elif directory.config_file.exists():
            raise MulvError(
                f"{path} already holds a run; continue it with --resume {path}, or choose another --out"
            )
        lanes = Lanes.of(
            build,
            config.num_envs,
            lambda lane, episode: seeding.integer(config.seed, Stream.ENV, lane, episode),
            workers=config.env_workers,
            timeout=config.env_timeout,
        )
        try:
            if saved:
                trainer, earlier_seconds = _take_up(config, directory, lanes, build, say)
            else:
                if resume:
                    say("           there was no checkpoint yet: starting from the beginning")
                trainer, earlier_seconds = _begin(config, directory, lanes, build, data, say), 0.0
        except BaseException:
            lanes.close()
            raise
        bar = progress if not isinstance(progress, bool) else _bar(trainer, enabled=progress)
        started = time.perf_counter()

        def save() -> None:
            _save(trainer, directory, earlier_seconds + time.perf_counter() - started)

        try:
            trainer.run(save, interrupts, bar)
        finally:
            bar.close()
            lanes.close()
            trainer.evaluator.close()
            trainer.logger.close()
        return _finish(trainer, directory, earlier_seconds + time.perf_counter() - started)


def _bar(trainer: Trainer, enabled: bool) -> Progress:
    config = trainer.config
    label = f"{config.algo} {config.task}"
    total = config.offline_updates + (config.total_steps or 0)
    return Progress(total, trainer.counters.clock, label, enabled)


def replay_layout(config: RunConfig, lanes: Lanes, data_rows: int = 0) -> ReplayLayout:
    """Room for the capacity, or for all rows of a short run: at worst every step has its own reset.

    Each lane's share of the data comes on top: it is kept whole until steps of the run's own fill the rest.
    """
    worst = 2 * ((config.total_steps or 0) // config.action_repeat + config.num_envs)
    # Between a checkpoint and the crash that falls back on the oldest one kept, so many rows may be written.
    slack = 2 * 2 * config.checkpoint_every * (config.keep_checkpoints + 1)
    room = (worst, 0) if worst <= config.replay_capacity else (config.replay_capacity, slack)
    layout = ReplayLayout.of(lanes.spec, lanes=lanes.num, capacity=room[0], slack=room[1])
    return replace(layout, capacity=layout.capacity + data_rows)


def _begin(
    config: RunConfig,
    directory: RunDirectory,
    lanes: Lanes,
    make: Callable[[], gym.Env],
    data: Data | None,
    say: Say,
) -> Trainer:
    """A run at its first step, or at the first update on its data."""
    agent = algorithm(config.algo).agent(config.agent, lanes.spec)
    layout = replay_layout(config, lanes, data.survey.rows(lanes.num) if data else 0)
    say(f"replay     {layout.nbytes / 1e6:.1f} MB reserved in {directory.replay}")
    replay = Replay.create(directory.replay, layout)
    if data is not None:
        say(f"data       {data.survey}")
        if data.dataset.note:
            say(f"           {data.dataset.note}")
        data.put_into(replay, directory)
    directory.write_config(config)
    return Trainer(config, agent, lanes, replay, Logger(directory.path), make)


def _take_up(
    config: RunConfig, directory: RunDirectory, lanes: Lanes, make: Callable[[], gym.Env], say: Say
) -> tuple[Trainer, float]:
    """A run at its newest checkpoint, and the seconds it took until there."""
    agent = algorithm(config.algo).agent(config.agent, lanes.spec)
    like = compiled.unpack(agent, compiled.init(agent, seeding.key(config.seed, Stream.INIT)))
    checkpoint.remove_leftovers(directory.checkpoints)
    state, meta, used = checkpoint.load_latest(directory.checkpoints, like)
    counters = Counters(**meta["counters"])
    replay = Replay.open(directory.replay, np.asarray(meta["replay_counts"]))
    replay = replay.enlarged(replay_layout(config, lanes, data_rows(directory, lanes.num)))
    logger = Logger(directory.path, meta["offsets"], counters.clock)
    trainer = Trainer(config, agent, lanes, replay, logger, make)
    trainer.state, trainer.counters = compiled.pack(state), counters
    trainer.recent.extend((ret, length) for ret, length in meta["recent"])
    trainer.evaluate_now = meta["evaluate_now"]
    for name, rng_state in meta["rngs"].items():
        trainer.rngs[Stream[name]].bit_generator.state = rng_state
    lanes.episodes_begun[:] = meta["episodes_begun"]
    say(f"resumed    {used}")
    directory.write_config(config)
    if not lanes.episodes_begun.any():  # it has only learned from data so far
        return trainer, meta["wall_s"]
    if meta["at_episode_end"]:
        # The episodes that begin here are already counted, and their first rows written: do both again.
        lanes.episodes_begun -= 1
        replay.counts -= 1
    else:
        replay.mark_truncated()
        say("           it lies within an episode: that one is cut off and another begun")
    replay.append(lanes.start())
    return trainer, meta["wall_s"]


def _save(trainer: Trainer, directory: RunDirectory, seconds: float) -> None:
    trainer.replay.flush()
    meta = {
        "counters": asdict(trainer.counters),
        "replay_counts": trainer.replay.counts.tolist(),
        "episodes_begun": trainer.lanes.episodes_begun.tolist(),
        "at_episode_end": bool(trainer.lanes.first.all()),
        "evaluate_now": trainer.evaluate_now,
        "recent": list(trainer.recent),
        "rngs": {stream.name: rng.bit_generator.state for stream, rng in trainer.rngs.items()},
        "offsets": trainer.logger.offsets,
        "wall_s": seconds,
    }
    clock, keep = trainer.counters.clock, trainer.config.keep_checkpoints
    checkpoint.save(directory.checkpoints, clock, trainer.tree, meta, keep=keep)


def _finish(trainer: Trainer, directory: RunDirectory, seconds: float) -> Outcome:
    """The run as one result line."""
    evaluations, config = trainer.logger.evaluations, trainer.config
    successes = [e["successes"] for e in evaluations]
    result = {
        "suite": "single",
        "method": config.algo,
        "task": config.task,
        "seed": config.seed,
        "env_steps": trainer.counters.env_steps,
        "updates": trainer.counters.updates,
        "eval_env_steps": [e["env_steps"] for e in evaluations],
        "eval_returns": [e["returns"] for e in evaluations],
        "eval_success": successes if successes and None not in successes else None,
        "final_mean": float(np.mean(evaluations[-1]["returns"])) if evaluations else None,
        "config": to_json(config),
        "config_hash": config_hash(config),
        "commit": commit(),
        "versions": versions(),
        "wall_s": round(seconds, 1),
    }
    if config.data is not None:
        result["dataset"] = read_record(directory)
    if config.offline_updates:
        result["eval_updates"] = [e["updates"] for e in evaluations]
    aside = directory.path / "result.json.tmp"
    aside.write_text(json.dumps(result))
    os.replace(aside, directory.path / "result.json")
    return Outcome(directory.path, result)
