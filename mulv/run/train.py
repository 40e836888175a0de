"""Start or resume a run, and train it to its end."""

import functools
from dataclasses import replace
from pathlib import Path

from mulv.agents import algorithm
from mulv.envs import make_env, preflight, resolve
from mulv.envs.rendering.gl import find_gl
from mulv.run.config import RunConfig
from mulv.run.interrupts import Interrupts
from mulv.run.progress import Watcher
from mulv.run.session import Make, Outcome, RunSession, Say


def complete(config: RunConfig) -> RunConfig:
    """The configuration with every default of the task and the machine filled in."""
    task = resolve(config.task, config.keep)
    usual = 0 if config.offline_updates else task.env_steps
    total = usual if config.total_steps is None else config.total_steps
    length = config.offline_updates + total
    every = max(1, length // 20) if config.eval_every is None else config.eval_every
    start = task.learning_starts if config.learning_starts is None else config.learning_starts
    repeat = task.action_repeat if config.action_repeat is None else config.action_repeat
    quality = config.render_quality
    if task.camera is not None and quality is None:
        quality = find_gl().quality
    return replace(
        config,
        agent=config.agent.with_discount(repeat),
        total_steps=total,
        eval_every=every,
        action_repeat=repeat,
        learning_starts=start,
        render_quality=quality,
        env_workers=task.camera is not None if config.env_workers is None else config.env_workers,
        overlap=True if task.pixels and config.overlap is None else config.overlap,
    )


def environment_of(config: RunConfig) -> Make:
    """A function that builds the environment of a configuration."""
    c = config
    return functools.partial(make_env, c.task, c.keep, c.action_repeat, c.camera, c.render_quality)


def check_learnable(config: RunConfig, make: Make) -> None:
    """Build and step the environment once, and build the agent for it, so that errors come before a run."""
    spec = preflight(make, config.env_timeout)
    algorithm(config.algo).agent(config.agent, spec)


def train(
    config: RunConfig,
    path: Path,
    *,
    make: Make | None = None,
    resume: bool = False,
    progress: bool | Watcher = True,
    save_on_signal: bool = True,
    say: Say = lambda line: None,
) -> Outcome:
    """Train offline on `config.data`, if any, then for `config.total_steps`; with `resume`, continue the run.

    `make` builds the environment, if it is not the one that `config.task` names. `progress` shows a bar, or
    is a `Watcher` to be called. On a signal a checkpoint is saved unless `save_on_signal` is off. It is
    usually in mid-episode, and a run resumed from there differs from one that was never stopped.
    """
    if make is None:
        config = complete(config)
        make = environment_of(config)
    check_learnable(config, make)
    with (
        Interrupts(listen=save_on_signal) as interrupts,
        RunSession(config, path, make, resume=resume, progress=progress, say=say) as run,
    ):
        run.trainer.run(run.save, interrupts, run.progress)
        return run.finish()
