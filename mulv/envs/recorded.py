"""Converts recorded observations and actions of an environment to those of a task."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from mulv.core.errors import MulvError
from mulv.envs.wrappers import KeepObservation, UnitAction


@dataclass(frozen=True)
class Translation:
    """Functions from a recording's observations and actions (time first) to the task's."""

    obs: Callable[[Any], np.ndarray]
    actions: Callable[[Any], np.ndarray]


def translation(env: gym.Env, obs_space: spaces.Space, action_space: spaces.Space, where: str) -> Translation:
    """How to convert recordings with these spaces to experience of the task `env`.

    Recordings of the simulator get the task's hidden entries removed and its actions scaled; those of the
    task itself stay as they are.
    """
    return Translation(observations(env, obs_space, where), _actions(env, action_space, where))


def observations(env: gym.Env, space: spaces.Space, where: str) -> Callable[[Any], np.ndarray]:
    """How to convert observations of `space` to those of the task `env`."""
    seen = _wrapper(env, KeepObservation)
    whole = seen.env.observation_space
    kept = seen.kept
    if alike(space, whole):
        return lambda values: flatten_many(space, values)[:, kept]
    flat = isinstance(space, spaces.Box) and len(space.shape) == 1
    if flat and space.shape == (spaces.flatdim(whole),):
        return lambda values: _shaped(values, space)[:, kept]
    if flat and space.shape == env.observation_space.shape:
        return lambda values: _shaped(values, space)
    raise MulvError(
        f"{where} has observations {_brief(space)}; the task's simulator gives {_brief(whole)}, "
        f"of which agents see {env.observation_space.shape}: choose the --task the data is of"
    )


def _actions(env: gym.Env, space: spaces.Space, where: str) -> Callable[[Any], np.ndarray]:
    own = env.action_space
    if isinstance(own, spaces.Discrete):
        if isinstance(space, spaces.Discrete) and space.n == own.n:
            return lambda values: flatten_many(space, values)
        raise MulvError(f"{where} has actions {_brief(space)}; the task's are {_brief(own)}")
    scaled = _wrapper(env, UnitAction)
    if _same_box(space, scaled.env.action_space):
        return lambda values: scaled.unit(_shaped(values, space))
    if _same_box(space, own):
        return lambda values: _shaped(values, space)
    raise MulvError(
        f"{where} has actions {_brief(space)}; the task's simulator takes {_brief(scaled.env.action_space)}"
    )


def alike(one: spaces.Space, other: spaces.Space) -> bool:
    """Whether two spaces have the same parts and shapes; bounds and types of numbers may differ."""
    if isinstance(one, spaces.Dict) and isinstance(other, spaces.Dict):
        return one.spaces.keys() == other.spaces.keys() and all(
            alike(one[name], other[name]) for name in one.spaces
        )
    if isinstance(one, spaces.Tuple) and isinstance(other, spaces.Tuple):
        return len(one) == len(other) and all(map(alike, one.spaces, other.spaces))
    if isinstance(one, spaces.Box) and isinstance(other, spaces.Box):
        return one.shape == other.shape
    return bool(one == other)


def flatten_many(space: spaces.Space, values: Any) -> np.ndarray:
    """Gymnasium's `flatten` of many values at once; leaves lead with time."""
    if isinstance(space, spaces.Dict):
        return np.concatenate([flatten_many(space[name], values[name]) for name in space.spaces], axis=1)
    if isinstance(space, spaces.Tuple):
        return np.concatenate([flatten_many(s, v) for s, v in zip(space, values, strict=True)], axis=1)
    if isinstance(space, spaces.Box | spaces.MultiBinary):
        return _shaped(values, space).reshape(len(values), -1)
    values = np.asarray(values)
    if isinstance(space, spaces.Discrete):
        return np.eye(int(space.n), dtype=np.float32)[values.reshape(-1) - int(space.start)]
    assert isinstance(space, spaces.MultiDiscrete)  # KeepObservation accepts no other kind
    columns = zip(values.reshape(len(values), -1).T, space.nvec.ravel(), space.start.ravel(), strict=True)
    return np.concatenate([np.eye(n, dtype=np.float32)[v - first] for v, n, first in columns], axis=1)


def _shaped(values: Any, space: spaces.Space) -> np.ndarray:
    """The values as an array with time first; an error if its shape is not that of the space."""
    values = np.asarray(values, np.float32)
    if values.shape[1:] != space.shape:
        raise MulvError(f"has values of shape {values.shape[1:]}, where its own space says {space.shape}")
    return values


def _same_box(one: spaces.Space, other: spaces.Space) -> bool:
    if not isinstance(one, spaces.Box) or not isinstance(other, spaces.Box) or one.shape != other.shape:
        return False
    return np.allclose(one.low, other.low) and np.allclose(one.high, other.high)


def _brief(space: spaces.Space) -> str:
    """A space as a short text."""
    if isinstance(space, spaces.Dict):
        return "{" + ", ".join(f"{name}: {_brief(part)}" for name, part in space.spaces.items()) + "}"
    if isinstance(space, spaces.Box):
        return f"{space.shape} in [{space.low.min():g}, {space.high.max():g}]"
    return str(space)


def _wrapper(env: gym.Env, kind: type[Any]) -> Any:
    while not isinstance(env, kind):
        assert isinstance(env, gym.Wrapper), f"a task as agents see it has a {kind.__name__}"
        env = env.env
    return env
