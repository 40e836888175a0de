"""Opens a dataset by name, as experience of a run's task: a run directory, or a local Minari dataset."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np

from mulv.core.errors import MulvError
from mulv.data import Replay
from mulv.data.episodes import Dataset, Episode, Survey, fill, read_episodes, survey
from mulv.data.minari import find_minari, recordings
from mulv.envs import Task, env_spec, resolve
from mulv.envs.recorded import observations, translation
from mulv.run.config import RunConfig
from mulv.run.directory import RunDirectory

COLLECTED = "collected.json"  # beside a replay that `mulv offline --collect` made


@dataclass(frozen=True)
class RunData:
    """A dataset whose episodes have been checked against a run's task."""

    dataset: Dataset
    survey: Survey

    def put_into(self, replay: Replay, directory: RunDirectory) -> None:
        """Write the dataset to a run's replay and its survey to the run's directory.

        The run does not need the dataset's source any more.
        """
        fill(replay, self.dataset, self.survey)
        record = self.survey.to_json() | {"note": self.dataset.note}
        directory.dataset_file.write_text(json.dumps(record))


def read_data(config: RunConfig, make: Callable[[], gym.Env]) -> RunData:
    """The run's dataset, with every episode checked: bad data is an error before anything is written."""
    assert config.data is not None
    env = make()
    try:
        dataset = open_dataset(config.data, config, env)
        return RunData(dataset, survey(dataset, env_spec(env)))
    finally:
        env.close()


def read_record(directory: RunDirectory) -> dict[str, Any]:
    """A summary of a run's dataset, for the result line."""
    saved = json.loads(directory.dataset_file.read_text())
    returns = saved.pop("returns")
    lengths = saved.pop("lengths")
    return saved | {
        "episodes": len(lengths),
        "steps": sum(lengths),
        "return_mean": float(np.mean(returns)),
        "return_min": min(returns),
        "return_max": max(returns),
    }


def data_rows(directory: RunDirectory, num_envs: int) -> int:
    """Replay rows that a run's dataset takes in the fullest lane (environment); 0 without a dataset."""
    if not directory.dataset_file.exists():
        return 0
    saved = json.loads(directory.dataset_file.read_text())
    return Survey.from_json(saved).rows(num_envs)


def open_dataset(name: str, config: RunConfig, env: gym.Env) -> Dataset:
    """The episodes of dataset `name`, with observations and actions as in the run's task `env`."""
    run = RunDirectory(Path(name))
    if (run.path / COLLECTED).exists():
        try:
            saved = json.loads((run.path / COLLECTED).read_text())
            return _of_run(run, saved["task"], saved["keep"], saved["action_repeat"], config, env)
        except (ValueError, KeyError, TypeError) as error:
            raise MulvError(f"{run.path / COLLECTED} cannot be read: {error!r}") from error
    if run.config_file.exists():
        past = run.read_config()
        return _of_run(run, past.task, past.keep, past.repeat, config, env)
    return _of_minari(name, config, env)


def _of_run(
    run: RunDirectory, task: str, keep: str | None, repeat: int, config: RunConfig, env: gym.Env
) -> Dataset:
    name = str(run.path)
    check_same_problem(task, keep, config, name)
    if repeat != config.repeat:
        raise MulvError(
            f"{name} takes each action {repeat} times and this run {config.repeat} times; "
            f"say --action-repeat {repeat}"
        )
    replay = Replay.open(run.replay, mode="r")
    shown = observations(env, gym.spaces.Box(-np.inf, np.inf, replay.layout.obs_shape, np.float32), name)

    def episodes() -> Iterator[Episode]:
        for episode in read_episodes(replay):
            yield episode._replace(obs=shown(episode.obs))

    return Dataset(name, episodes)


def _of_minari(name: str, config: RunConfig, env: gym.Env) -> Dataset:
    found = find_minari(name)
    recorded_in = found.env_spec.id if found.env_spec is not None else None
    note, target = "", resolve(config.task, config.keep)
    if recorded_in is not None and recorded_in.startswith("mulv/"):
        check_same_problem(recorded_in, None, config, name)
    elif recorded_in not in (None, target.id):
        note = f"it was recorded in {recorded_in}, and the task's simulator is {target.id}"
    shown = translation(env, found.observation_space, found.action_space, name)

    def episodes() -> Iterator[Episode]:
        for number, each in enumerate(recordings(found, name)):
            try:
                obs, actions = shown.obs(each.obs), shown.actions(each.actions)
            except (MulvError, ValueError, IndexError, KeyError, TypeError) as error:
                raise MulvError(f"{name}: episode {number} {error}") from error
            rewards = np.asarray(each.rewards, np.float32)
            yield Episode(obs, actions, rewards, each.terminated, each.truncated)

    return Dataset(name, episodes, note)


def check_same_problem(task: str, keep: str | None, config: RunConfig, where: str) -> None:
    """Raise unless `task` is the run's task, or the same one with all that the run's task observes."""
    source, target = resolve(task, keep), resolve(config.task, config.keep)
    if _problem(source) != _problem(target):
        raise MulvError(
            f"{where} is of the task {source.name}, not of {target.name}; choose the --task it is of"
        )
    if source.keep not in (None, target.keep):
        raise MulvError(f"{where} is of {source.name}, which hides something that {target.name} shows")


def _problem(task: Task) -> tuple[Any, ...]:
    return task.simulator, task.id, task.reward, task.kwargs
