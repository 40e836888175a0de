"""Converts an environment's own observations to those that agents see, and agents' actions back."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np

from mulv.core.errors import MulvError
from mulv.envs.wrappers import KeepObservation, UnitAction


@dataclass(frozen=True)
class Translation:
    """Functions that convert observations and actions; the identity if there is nothing to convert."""

    observation: Callable[[Any], Any]  # from the environment's to the agent's
    action: Callable[[np.ndarray], np.ndarray]  # from the agent's to the environment's

    @staticmethod
    def none() -> "Translation":
        """The identity, for an environment that is already as agents see it."""
        return Translation(lambda o_h: o_h, lambda a_h: a_h)

    @staticmethod
    def of(adapted: gym.Env) -> "Translation":
        """The translation of an environment wrapped by `adapt`, which may be closed."""
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
    """The outermost wrapper of a kind; None if there is none."""
    while isinstance(env, gym.Wrapper):
        if isinstance(env, kind):
            return env
        env = env.env
    return None
