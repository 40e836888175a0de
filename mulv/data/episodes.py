"""Recorded episodes: read from a replay, checked, and written into another."""

import hashlib
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np

from mulv.core.errors import MulvError
from mulv.core.spec import EnvSpec, Step
from mulv.data.replay import Replay


class Episode(NamedTuple):
    """An episode of T decisions and T+1 observations, in the form that agents see."""

    obs: np.ndarray  # time + 1, *obs
    actions: np.ndarray  # time, act
    rewards: np.ndarray  # time
    terminated: bool
    truncated: bool


@dataclass(frozen=True)
class Dataset:
    """Episodes that can be iterated more than once, and their source."""

    source: str
    episodes: Callable[[], Iterator[Episode]]
    note: str = ""  # a remark for the user


@dataclass(frozen=True)
class Survey:
    """Lengths, returns and checksum of a dataset."""

    source: str
    sha256: str  # of every episode's content, in order
    lengths: tuple[int, ...]  # decisions of each episode
    returns: tuple[float, ...]

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @staticmethod
    def from_json(saved: Mapping[str, Any]) -> "Survey":
        return Survey(
            saved["source"], saved["sha256"], tuple(map(int, saved["lengths"])), tuple(saved["returns"])
        )

    @property
    def steps(self) -> int:
        """Decisions over all episodes."""
        return sum(self.lengths)

    def lanes_of(self, lanes: int) -> list[int]:
        """The lane (environment of a replay) for each episode: the one with the fewest rows so far."""
        rows, chosen = np.zeros(lanes, np.int64), []
        for length in self.lengths:
            chosen.append(int(rows.argmin()))
            rows[chosen[-1]] += length + 1
        return chosen

    def rows(self, lanes: int) -> int:
        """Rows in the fullest lane; an episode of T decisions has T+1 rows."""
        totals = np.bincount(self.lanes_of(lanes), np.asarray(self.lengths) + 1, lanes)
        return int(totals.max())

    def __str__(self) -> str:
        returns = np.asarray(self.returns)
        return (
            f"{len(self.lengths):,} episodes, {self.steps:,} steps, "
            f"returns {returns.mean():.1f} ({returns.min():.1f} to {returns.max():.1f})"
        )


def survey(dataset: Dataset, spec: EnvSpec) -> Survey:
    """Check every episode of a dataset against `spec` and return its survey; a bad episode is an error."""
    digest, lengths, returns = hashlib.sha256(), [], []
    for number, episode in enumerate(dataset.episodes()):
        if fault := _fault(episode, spec):
            raise MulvError(f"{dataset.source}: episode {number} {fault}")
        for array in (episode.obs, episode.actions, episode.rewards):
            digest.update(np.ascontiguousarray(array, np.float32).data)
        digest.update(bytes([episode.terminated, episode.truncated]))
        lengths.append(len(episode.rewards))
        returns.append(float(np.sum(episode.rewards, dtype=np.float64)))
    if not lengths:
        raise MulvError(f"{dataset.source} holds no episode with a step, so there is nothing to learn from")
    return Survey(dataset.source, digest.hexdigest(), tuple(lengths), tuple(returns))


def _fault(episode: Episode, spec: EnvSpec) -> str | None:
    steps = len(episode.rewards)
    if steps < 1:
        return "has no step; leave such episodes out"
    shapes = {
        "observations": (episode.obs, (steps + 1, *spec.obs_shape)),
        "actions": (episode.actions, (steps, spec.act_dim)),
        "rewards": (episode.rewards, (steps,)),
    }
    for name, (array, shape) in shapes.items():
        if array.shape != shape:
            return f"has {name} of shape {array.shape}, where {steps} steps of the task have {shape}"
        if not np.isfinite(array).all():
            step = int(np.argmin(np.isfinite(array.reshape(len(array), -1)).all(axis=1)))
            return f"has {name} that are not finite at step {step}; leave such episodes out"
    if not spec.discrete and (largest := float(np.abs(episode.actions).max())) > 1 + 1e-5:
        return f"has an action of {largest:g}, outside [-1, 1]; scale the actions to the task's bounds"
    return None


def fill(replay: Replay, dataset: Dataset, found: Survey) -> None:
    """Write a surveyed dataset to an empty replay, which must be large enough."""
    for lane, episode in zip(found.lanes_of(replay.layout.lanes), dataset.episodes(), strict=True):
        replay.extend(lane, to_rows(episode))
    replay.flush()


def to_rows(episode: Episode) -> Step:
    """An episode as rows of the replay: its reset, then one row per decision."""
    steps = len(episode.rewards)
    end = np.arange(steps + 1) == steps
    return Step(
        lane=np.zeros(steps + 1, np.int64),
        obs=episode.obs,
        action=np.concatenate([np.zeros_like(episode.actions[:1]), episode.actions]),
        reward=np.concatenate([[0.0], episode.rewards]),
        terminated=end & episode.terminated,
        truncated=end & episode.truncated,
        step=np.arange(steps + 1),
    )


def read_episodes(replay: Replay, until: Sequence[int] | None = None) -> Iterator[Episode]:
    """The episodes of a replay, lane after lane; an unfinished one counts as truncated.

    `until` is how many rows of each lane to read, by default all. An episode whose beginning has been
    overwritten is left out, because windows need it.
    """
    for lane, count in enumerate(replay.counts if until is None else until):
        t = np.arange(max(int(replay.counts[lane]) - replay.layout.capacity, 0), int(count))
        begins = np.flatnonzero(replay.column("step", lane, t) == 0)
        for begin, end in itertools.pairwise([*begins, len(t)]):
            if end - begin > 1:  # otherwise a reset without a decision after it
                yield _read(replay, lane, t[begin:end])


def _read(replay: Replay, lane: int, t: np.ndarray) -> Episode:
    terminated = bool(replay.column("terminated", lane, t[-1:])[0])
    truncated = bool(replay.column("truncated", lane, t[-1:])[0])
    return Episode(
        replay.column("obs", lane, t),
        replay.column("action", lane, t[1:]),
        replay.column("reward", lane, t[1:]),
        terminated,
        truncated or not terminated,
    )


def newest(episodes: Iterable[Episode], steps: int) -> list[Episode]:
    """The last episodes with at most `steps` decisions in total, in their order."""
    kept: list[Episode] = []
    for episode in reversed(list(episodes)):
        steps -= len(episode.rewards)
        if steps < 0:
            break
        kept.append(episode)
    return kept[::-1]
