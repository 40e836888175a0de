"""Collects datasets: of random actions, of a run's policy halfway or at its end, or of a run's replay."""

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
import tyro

from mulv.agents import algorithm
from mulv.core.errors import MulvError
from mulv.core.limits import NOT_NEGATIVE, at_least, check_fields
from mulv.data import Replay, ReplayLayout
from mulv.data.episodes import Dataset, Survey, fill, newest, read_episodes, survey
from mulv.data.minari import check_new, write_minari
from mulv.envs import TASKS, VectorEnv, gymnasium_id, make_env, resolve
from mulv.run import checkpoint, compiled, seeding
from mulv.run.directory import RunDirectory, commit, versions
from mulv.run.offline.dataset import COLLECTED
from mulv.run.offline.milestones import Milestone, find_half_way, last_milestone, rows_until
from mulv.run.progress import Progress
from mulv.run.seeding import Stream

Kind = Literal["random", "medium", "medium-replay", "expert"]
Choose = Callable[[VectorEnv], np.ndarray]  # actions for the environments' present observations
LANES = 4  # environments stepped in parallel
RANDOM_EPISODES = 8  # to estimate the return of a random policy


@dataclass(frozen=True)
class CollectConfig:
    """Collect a dataset: of random actions, or of a run that learned the task (--from)."""

    collect: Kind
    """random: uniform actions. medium, expert: the policy half way to a run's final return, or at its end.
    medium-replay: what the run itself saw until half way."""
    out: Path
    """The dataset's directory."""
    steps: Annotated[int, at_least(1)] = 100_000
    """Decisions; of medium-replay at most so many, the newest."""
    task: str | None = None
    """The task. Default: the run's."""
    from_: Annotated[Path | None, tyro.conf.arg(name="from")] = None
    """The run whose policy or replay it is; for medium keep its checkpoints (--keep-checkpoints 20)."""
    seed: Annotated[int, NOT_NEGATIVE] = 0
    """Seed of episodes and actions."""
    minari: str | None = None
    """Also save it as the local Minari dataset of this id."""
    progress: bool = True
    """Show a progress bar."""

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True)
class Where:
    """The task, its options and the seed of a dataset."""

    task: str
    keep: str | None
    action_repeat: int
    seed: int

    def envs(self) -> VectorEnv:
        return VectorEnv.of(
            lambda: make_env(self.task, self.keep, self.action_repeat),
            LANES,
            lambda lane, episode: seeding.integer(self.seed, Stream.ENV, lane, episode),
        )


def collect(config: CollectConfig, say: Callable[[str], None] = lambda line: None) -> Survey:
    """Write a dataset to the new directory `config.out`, atomically; returns its survey."""
    if config.out.exists():
        raise MulvError(f"{config.out} already exists; choose another --out")
    if config.minari is not None:
        check_new(config.minari)
    where, history = _where(config), None
    if config.collect != "random":
        assert config.from_ is not None
        history = _milestone(config.collect, config.from_, where)
        say(f"from       {history}")
    with _aside(config.out) as aside, closing(where.envs()) as envs:
        dataset = _gather(config, where, history, envs, aside / "recording")
        found = _write(dataset, envs, aside)
        origin = {} if history is None else {"run": str(config.from_), **asdict(history)}
        if config.from_ is not None:  # its configuration, commit and versions
            origin |= json.loads(RunDirectory(config.from_).config_file.read_text())
        record = {"kind": config.collect, **asdict(where), "origin": origin, **found.to_json()}
        record |= {"commit": commit(), "versions": versions()}
        (aside / COLLECTED).write_text(json.dumps(record, indent=2))
        if config.minari is not None:
            _export(config.minari, dataset, where, config.collect)
        shutil.rmtree(aside / "recording", ignore_errors=True)
    return found


def _where(config: CollectConfig) -> Where:
    """The task that `--task` names, or that of the run in `--from`."""
    if config.collect == "random":
        if config.task is None or config.from_ is not None:
            raise MulvError("random actions are of no run: say which --task they are for, and no --from")
        return Where(resolve(config.task).name, None, 1, config.seed)
    if config.from_ is None:
        raise MulvError(f"{config.collect} data is of a run that learned the task; say which with --from RUN")
    past = RunDirectory(config.from_).read_config()
    if config.task is not None and resolve(config.task) != resolve(past.task, past.keep):
        raise MulvError(f"{config.from_} is of {past.task}, not of {config.task}; leave --task out")
    return Where(past.task, past.keep, past.repeat, config.seed)


def _gather(
    config: CollectConfig, where: Where, history: Milestone | None, envs: VectorEnv, directory: Path
) -> Dataset:
    """The episodes: collected now, or read from the run's replay."""
    if history is None:
        choose = _random(where)
    else:
        assert config.from_ is not None
        if config.collect == "medium-replay":
            seen = Replay.open(RunDirectory(config.from_).replay, mode="r")
            found = newest(read_episodes(seen, rows_until(seen, history)), config.steps)
            return Dataset(str(config.out), lambda: iter(found))
        choose = _policy(config.from_, history, envs, where)
    bar = Progress(config.steps, 0, f"{config.collect} {where.task}", config.progress)
    recorded = _record(envs, choose, config.steps, directory, bar)
    return Dataset(str(config.out), lambda: read_episodes(recorded))


@contextmanager
def _aside(out: Path) -> Iterator[Path]:
    """A temporary directory that is renamed to `out` at the end, or removed on an error."""
    aside = out.with_name(f".writing-{out.name}")
    shutil.rmtree(aside, ignore_errors=True)
    aside.mkdir(parents=True)
    try:
        yield aside
        aside.rename(out)
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def _milestone(kind: Kind, run: Path, where: Where) -> Milestone:
    """The point of a run's history at which a dataset of this kind is taken."""
    if kind == "expert":
        return last_milestone(run)
    random = random_return(where)
    return find_half_way(run, random, saved_only=kind == "medium")


def random_return(where: Where) -> float:
    """Mean return of RANDOM_EPISODES episodes with uniform actions."""
    choose = _random(replace(where, seed=where.seed + 1))
    with closing(where.envs()) as envs:
        envs.start()
        while len(envs.finished) < RANDOM_EPISODES:
            envs.step(choose(envs))
        return float(np.mean([episode.ret for episode in envs.finished]))


def _random(where: Where) -> Choose:
    rng = seeding.generator(where.seed, Stream.WARM_UP)
    return lambda envs: envs.random_actions(rng)


def _policy(run: Path, milestone: Milestone, envs: VectorEnv, where: Where) -> Choose:
    """A run's policy at a milestone, with its exploration noise."""
    past = RunDirectory(run).read_config()
    agent = algorithm(past.algo).agent(past.agent, envs.spec)
    like = compiled.unpack(agent, compiled.init(agent, seeding.key(past.seed, Stream.INIT)))
    tree, _ = checkpoint.load(run / "checkpoints" / f"{milestone.clock:010d}", like)
    state, carry = compiled.pack(tree), compiled.init_carry(agent, envs.num_envs)
    key, step = seeding.key(where.seed, Stream.ACT), 0

    def choose(envs: VectorEnv) -> np.ndarray:
        nonlocal carry, step
        carry = compiled.act(
            agent, state, carry, envs.obs, envs.first, key, np.int32(step), deterministic=False
        )
        step += 1
        return np.asarray(carry.action)

    return choose


def _record(envs: VectorEnv, choose: Choose, steps: int, directory: Path, bar: Progress) -> Replay:
    """A replay with `steps` decisions in the environments; unfinished episodes are marked as truncated."""
    room = 2 * (steps + 2 * envs.num_envs)  # enough for a reset after every step
    replay = Replay.create(directory, ReplayLayout.of(envs.spec, lanes=envs.num_envs, capacity=room, slack=0))
    with closing(bar):
        replay.append(envs.start())
        taken = 0
        while taken < steps:
            for rows in envs.step(choose(envs)):
                replay.append(rows)
                taken += int((rows.step > 0).sum())
            bar.step(min(taken, steps), envs.finished[-1].ret if envs.finished else None)
    replay.mark_truncated()
    return replay


def _write(dataset: Dataset, envs: VectorEnv, directory: Path) -> Survey:
    """Write the dataset to a replay with one lane that it fills exactly; returns its survey."""
    found = survey(dataset, envs.spec)
    layout = ReplayLayout.of(envs.spec, lanes=1, capacity=found.rows(1), slack=0)
    fill(Replay.create(directory / "replay", layout), dataset, found)
    return found


def _export(dataset_id: str, dataset: Dataset, where: Where, kind: Kind) -> None:
    task = resolve(where.task, where.keep)
    with closing(make_env(where.task, where.keep, where.action_repeat)) as env:
        write_minari(
            dataset_id,
            dataset.episodes(),
            obs_space=env.observation_space,
            action_space=env.action_space,
            env_id=gymnasium_id(task) if task.name in TASKS else None,
            algorithm=kind,
            description=f"{kind} data of {task.name}, collected by mulv at commit {commit()}",
        )
