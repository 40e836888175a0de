"""Start a run or take it up again, and see it to its end."""

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
    """The configuration with nothing left to default."""
    task = resolve(config.task, config.keep)
    usual = 0 if config.offline_updates else task.env_steps
    total = usual if config.total_steps is None else config.total_steps
    length = config.offline_updates + total
    every = max(1, length // 20) if config.eval_every is None else config.eval_every
    repeat = task.action_repeat if config.action_repeat is None else config.action_repeat
    quality = config.render_quality
    if task.camera is not None and quality is None:
        quality = find_gl().quality
    return replace(
        config,
        total_steps=total,
        eval_every=every,
        action_repeat=repeat,
        render_quality=quality,
        env_workers=task.camera is not None if config.env_workers is None else config.env_workers,
        overlap=True if task.pixels and config.overlap is None else config.overlap,
    )


def environment_of(config: RunConfig) -> Make:
    """What builds the environment that a configuration names."""
    c = config
    return functools.partial(make_env, c.task, c.keep, c.action_repeat, c.camera, c.render_quality)


def check_learnable(config: RunConfig, make: Make) -> None:
    """Try the environment, and the agent on its shapes: what cannot work is said before a run begins."""
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
    """Train on `config.data`, if any, then to `config.total_steps`, or on from the run's newest checkpoint.

    `make` builds the environment where `config.task` does not name one. `progress` is whether to show a
    bar, or who else is told. A checkpoint saved on a signal mostly lies within an episode, so that what is
    resumed from it is not the run that was never stopped; without `save_on_signal` there is none.
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
