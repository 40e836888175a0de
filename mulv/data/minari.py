"""Reads and writes local Minari datasets, through Minari's API. Nothing is downloaded."""

import contextlib
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from mulv.core.errors import MulvError
from mulv.data.episodes import Episode


class Recording(NamedTuple):
    """An episode in the spaces it was recorded in; every leaf has time as first axis."""

    obs: Any
    actions: Any
    rewards: np.ndarray
    terminated: bool
    truncated: bool


def find_minari(name: str) -> Any:
    """The local Minari dataset with this id, or in this directory."""
    minari = _minari(f"{name} is no run directory, and a Minari dataset")
    inside = [path for path in (Path(name), Path(name) / "data") if (path / "metadata.json").is_file()]
    try:
        with _quiet():
            return minari.MinariDataset(inside[0]) if inside else minari.load_dataset(name)
    except FileNotFoundError:
        raise MulvError(
            f"{name} is no dataset: neither a run directory nor the id of a local Minari dataset "
            "(`minari list local` shows those, `minari download` fetches others)"
        ) from None
    except Exception as error:  # libraries raise many kinds of errors on a damaged file
        raise MulvError(f"the Minari dataset {name} cannot be read: {_line(error)}") from error


def recordings(dataset: Any, where: str) -> Iterator[Recording]:
    """The episodes of a Minari dataset, in order; `where` names it in errors."""
    for number in dataset.episode_indices:
        try:
            (episode,) = dataset.iterate_episodes([number])
        except KeyError as error:
            raise MulvError(f"{where}: episode {number} lacks something: {_line(error)}") from error
        except Exception as error:
            raise MulvError(f"{where}: episode {number} cannot be read: {_line(error)}") from error
        ends = [np.asarray(flags, bool) for flags in (episode.terminations, episode.truncations)]
        if any(flags.shape != episode.rewards.shape for flags in ends):
            raise MulvError(f"{where}: episode {number} has rewards and ends of different lengths")
        terminated, truncated = ends
        if (early := np.flatnonzero((terminated | truncated)[:-1])).size:
            raise MulvError(f"{where}: episode {number} goes on after it ended at step {early[0] + 1}")
        # An episode without an end was truncated by the recording.
        over = bool(terminated[-1:].any())
        yield Recording(
            episode.observations,
            episode.actions,
            episode.rewards,
            over,
            bool(truncated[-1:].any()) or not over,
        )


def check_new(dataset_id: str) -> None:
    """Raise an error if a dataset with this id cannot be created, before data is collected for it."""
    minari = _minari(dataset_id)
    try:
        minari.dataset.minari_dataset.parse_dataset_id(dataset_id)
    except ValueError as error:
        raise MulvError(f"{dataset_id} cannot be a Minari dataset: {_line(error)}") from error
    if dataset_id in minari.list_local_datasets():
        raise MulvError(f"there is a Minari dataset {dataset_id} already; choose another --minari")


def write_minari(
    dataset_id: str,
    episodes: Iterable[Episode],
    *,
    obs_space: Any,
    action_space: Any,
    env_id: str | None,
    algorithm: str,
    description: str,
) -> None:
    """Write a new local Minari dataset; `env_id` is the Gymnasium id of its environment."""
    minari = _minari(dataset_id)
    discrete = hasattr(action_space, "n")
    buffers = [
        minari.data_collector.EpisodeBuffer(
            observations=list(episode.obs),
            actions=list(episode.actions.argmax(1) if discrete else episode.actions),
            rewards=episode.rewards.tolist(),
            terminations=_at_end(episode.terminated, episode),
            truncations=_at_end(episode.truncated, episode),
        )
        for episode in episodes
    ]
    try:
        with _quiet():
            minari.create_dataset_from_buffers(
                dataset_id,
                buffers,
                env=env_id,
                observation_space=obs_space,
                action_space=action_space,
                algorithm_name=algorithm,
                description=description,
            )
    except ValueError as error:
        raise MulvError(f"{dataset_id} cannot be a Minari dataset: {_line(error)}") from error


def _at_end(flag: bool, episode: Episode) -> list[bool]:
    return [False] * (len(episode.rewards) - 1) + [flag]


def _minari(what: str) -> ModuleType:
    try:
        import minari
        import minari.data_collector
    except ImportError:
        raise MulvError(f"{what} needs the extra minari: pip install 'mulv[minari]'") from None
    return minari


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Suppress warnings: Minari's about missing descriptions, Gymnasium's about old versions."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _line(error: BaseException) -> str:
    return " ".join(str(error).split()) or type(error).__name__
