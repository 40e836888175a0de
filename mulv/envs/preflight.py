"""Checks an environment before a run writes anything."""

from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np

from mulv.core.errors import EnvironmentFault, MulvError
from mulv.core.spec import EnvSpec
from mulv.envs.deadline import deadline
from mulv.envs.make import env_spec


def preflight(make: Callable[[], gym.Env], timeout: float = 60.0) -> EnvSpec:
    """Reset and step an environment once, so that errors show before a run; returns its shapes."""
    env: gym.Env | None = None
    try:
        with deadline(timeout, "the environment, when it was tried out,"):
            env = make()
            obs, _ = env.reset(seed=0)
            _check(env, obs, "reset")
            result = env.step(env.action_space.sample())
        if not isinstance(result, tuple) or len(result) != 5:
            raise EnvironmentFault("step must return (observation, reward, terminated, truncated, info)")
        _check(env, result[0], "step")
        reward = np.asarray(result[1])
        if reward.shape != ():
            raise EnvironmentFault(f"the reward must be one number, and has shape {reward.shape}")
        for name, value in zip(("terminated", "truncated"), result[2:4], strict=True):
            if not isinstance(value, bool | np.bool_):
                raise EnvironmentFault(
                    f"{name} must be True or False, and step gave {value!r:.40} ({type(value).__name__})"
                )
        return env_spec(env)
    except MulvError:
        raise
    except Exception as error:
        raise EnvironmentFault(f"the environment raised {type(error).__name__}: {error}") from error
    finally:
        if env is not None:
            env.close()


def _check(env: gym.Env, obs: Any, call: str) -> None:
    space = env.observation_space
    obs = np.asarray(obs)
    if obs.shape != space.shape or obs.dtype != space.dtype:
        raise EnvironmentFault(
            f"{call} gave an observation of shape {obs.shape} and type {obs.dtype}, "
            f"but its space says {space.shape} and {space.dtype}"
        )
