"""Between an environment's own observations and actions and those that agents see."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np

from mulv.core.errors import MulvError
from mulv.envs.wrappers import KeepObservation, UnitAction


@dataclass(frozen=True)
class Translation:
    """Two functions; both leave alone what needs no translation."""

    observation: Callable[[Any], Any]  # from the environment's to the agent's
    action: Callable[[np.ndarray], np.ndarray]  # from the agent's to the environment's

    @staticmethod
    def none() -> "Translation":
        """Of an environment that already is as agents see it."""
        return Translation(lambda o_h: o_h, lambda a_h: a_h)

    @staticmethod
    def of(adapted: gym.Env) -> "Translation":
        """Of an environment that `adapt` has wrapped; it need not be open."""
        keep, unit = _wrapper(adapted, KeepObservation), _wrapper(adapted, UnitAction)
        return Translation(
            _observation(keep) if isinstance(keep, KeepObservation) else lambda o_h: o_h,
            unit.action if isinstance(unit, UnitAction) else lambda a_h: a_h,
        )


def _observation(keep: KeepObservation) -> Callable[[Any], Any]:
    def translate(observation: Any) -> Any:
        try:
            return keep.observation(observation)
        except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
            raise MulvError(
                f"the observation does not fit this agent's environment, {keep.env.observation_space}: "
                f"{type(error).__name__} {error}"
            ) from error

    return translate


def _wrapper(env: gym.Env, kind: type[gym.Wrapper]) -> gym.Wrapper | None:
    """The outermost wrapper of a kind."""
    while isinstance(env, gym.Wrapper):
        if isinstance(env, kind):
            return env
        env = env.env
    return None
