"""The simulators of the tasks. Each is imported only when one of its tasks is made."""

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import gymnasium as gym

from mulv.core.errors import MulvError
from mulv.envs.tasks import Task


@dataclass(frozen=True)
class Simulator:
    """How to make a task's environment, before mulv's wrappers."""

    make: Callable[..., gym.Env]  # called with the task and further keywords
    package: str | None = None  # an additional package that it needs; also the name of mulv's extra

    @property
    def installed(self) -> bool:
        return self.package is None or importlib.util.find_spec(self.package) is not None

    def require(self, name: str) -> None:
        """Raise an error that says what to install, if the simulator's package is missing."""
        if not self.installed:
            raise MulvError(f"{name} needs the extra {self.package}: pip install 'mulv[{self.package}]'")


def _gymnasium(task: Task, **kwargs: Any) -> gym.Env:
    try:
        return gym.make(task.id, disable_env_checker=True, **task.kwargs, **kwargs)
    except (gym.error.Error, ImportError, TypeError) as error:
        raise MulvError(f"{task.id} could not be made: {error}") from error


def _dm_control(task: Task, **kwargs: Any) -> gym.Env:
    from mulv.envs.dm_control import DMControlEnv

    return DMControlEnv(task.id, **kwargs)


def _metaworld(task: Task, **kwargs: Any) -> gym.Env:
    from mulv.envs.metaworld import MetaWorldEnv

    return MetaWorldEnv(task.id, **kwargs)


SIMULATORS = {
    "gymnasium": Simulator(_gymnasium),
    "dm_control": Simulator(_dm_control),
    "metaworld": Simulator(_metaworld, package="metaworld"),
}
