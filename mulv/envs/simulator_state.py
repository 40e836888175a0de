"""Saves and restores the whole state of a simulator, so that the same actions give the same results."""

import copy
import math
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import mujoco
import numpy as np

LIMITS = ("_max_episode_steps", "_step_limit")  # Gymnasium's and dm_control's: options, not state
_PLAIN = (bool, int, float, np.ndarray, np.generic)


@dataclass(frozen=True)
class SimulatorState:
    """MuJoCo's data, if there is any, and everything else that changes within an episode."""

    data: mujoco.MjData | None
    values: tuple[dict[str, Any], ...]  # numbers and arrays of each object that holds state
    random: tuple[Any, ...]  # states of these objects' random generators


def save_state(env: gym.Env) -> SimulatorState:
    """The state of an environment made by `make_env`, for Gymnasium's or dm_control's simulators.

    All of MuJoCo's data is saved, including values derived from positions: rewards may use derived values,
    which lag one step behind, and the solver starts from its last solution. The model is not saved: a task
    that changes its model at a reset can be restored only within the same episode.
    """
    data, holders = _data(env), _holders(env)
    return SimulatorState(
        data=None if data is None else copy.copy(data),
        values=tuple(copy.deepcopy(_plain(holder)) for holder in holders),
        random=tuple(copy.deepcopy(_random(holder)) for holder in holders),
    )


def restore_state(env: gym.Env, state: SimulatorState) -> None:
    """Restore a saved state; `env` may be another environment of the same simulator, hiding other entries.

    `env` must have been reset once, which Gymnasium requires before a step.
    """
    data = _data(env)
    if data is not None:
        model = _model(env)
        mujoco.mj_copyData(data, model, state.data)
    for holder, values, random in zip(_holders(env), state.values, state.random, strict=True):
        vars(holder).update(copy.deepcopy(values))
        for name, saved in random.items():
            _set_random(getattr(holder, name), saved)


def lift_time_limits(env: gym.Env) -> None:
    """Remove time limits, so that episodes end only by termination."""
    for holder in _holders(env):
        for name in LIMITS:
            if hasattr(holder, name):
                setattr(holder, name, math.inf)


def _layers(env: gym.Env) -> list[Any]:
    layers: list[Any] = [env]
    while isinstance(layers[-1], gym.Wrapper):
        layers.append(layers[-1].env)
    return layers


def _holders(env: gym.Env) -> list[Any]:
    """The objects that hold state: the simulator, and of its wrappers only the time limit."""
    limits = [layer for layer in _layers(env) if isinstance(layer, gym.wrappers.TimeLimit)]
    return [*limits, env.unwrapped, *getattr(env.unwrapped, "state_holders", ())]


def _plain(holder: Any) -> dict[str, Any]:
    return {
        name: value
        for name, value in vars(holder).items()
        if isinstance(value, _PLAIN) and name not in LIMITS
    }


def _random(holder: Any) -> dict[str, Any]:
    """The states of an object's random generators."""
    found: dict[str, Any] = {}
    for name, value in vars(holder).items():
        if isinstance(value, np.random.Generator):
            found[name] = value.bit_generator.state
        elif isinstance(value, np.random.RandomState):
            found[name] = value.get_state()
    return found


def _set_random(generator: Any, saved: Any) -> None:
    if isinstance(generator, np.random.Generator):
        generator.bit_generator.state = saved
    else:
        generator.set_state(saved)


def _data(env: gym.Env) -> mujoco.MjData | None:
    simulator: Any = env.unwrapped
    if hasattr(simulator, "physics"):
        return simulator.physics.data.ptr
    data = getattr(simulator, "data", None)
    return data if isinstance(data, mujoco.MjData) else None


def _model(env: gym.Env) -> mujoco.MjModel:
    simulator: Any = env.unwrapped
    return simulator.physics.model.ptr if hasattr(simulator, "physics") else simulator.model
