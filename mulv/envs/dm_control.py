"""dm_control's suite, and its manipulation tasks, as Gymnasium environments with vector observations."""

import os
from typing import Any
from unittest.mock import patch

import gymnasium as gym
import numpy as np

# dm_control's own renderer would load GL, or warn without one; `rendering/` draws frames instead.
with patch.dict(os.environ, MUJOCO_GL="disable"):
    from dm_control import mujoco as dm_mujoco
    from dm_control import suite


def suite_tasks() -> list[str]:
    """Every `domain-task` of the suite."""
    return [f"{domain}-{task}" for domain, task in suite.ALL_TASKS]


def _load(id: str) -> tuple[Any, np.random.RandomState]:
    """A dm_control environment, and the random generator that it draws from."""
    domain, _, task = id.partition("-")
    if domain == "manipulation":
        from dm_control import manipulation  # only here, because it takes half a second

        env = manipulation.load(f"{task}_features", seed=0)
        return env, env.random_state
    env = suite.load(domain, task, task_kwargs={"random": 0})
    return env, env.task.random


class DMControlEnv(gym.Env[Any, np.ndarray]):
    """One task. Observations are a dictionary of float32 vectors, sorted by name.

    dm_control ends an episode at its time limit with discount 1, which is a truncation here; discount 0
    is a termination.
    """

    def __init__(self, id: str, render_mode: str | None = None):
        self._env, self._random = _load(id)
        self.metadata = {"render_modes": [], "render_fps": 50}
        self.render_mode = render_mode
        self.observation_space = gym.spaces.Dict(
            {
                name: gym.spaces.Box(-np.inf, np.inf, (int(np.prod(spec.shape, dtype=int)),), np.float32)
                for name, spec in self._env.observation_spec().items()
            }
        )
        action = self._env.action_spec()
        low = np.broadcast_to(action.minimum, action.shape).astype(np.float32)
        high = np.broadcast_to(action.maximum, action.shape).astype(np.float32)
        self.action_space = gym.spaces.Box(low, high, dtype=np.float32)

    @property
    def physics(self) -> Any:
        """The simulator, which holds the full state."""
        return self._env.physics

    @property
    def state_holders(self) -> tuple[Any, Any]:
        """What holds an episode's state besides the simulator: dm_control's environment and its task."""
        return self._env, self._env.task

    def _vectors(self, observation: dict[str, Any]) -> dict[str, np.ndarray]:
        return {name: np.float32(value).reshape(-1) for name, value in observation.items()}

    def observe(self) -> dict[str, np.ndarray]:
        """The observation of the simulator's present state."""
        return self._vectors(self._env.task.get_observation(self._env.physics))

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        super().reset(seed=seed)
        if seed is not None:
            self._random.seed(seed % 2**32)
        # A task with new terrain would create a GL context only to upload it.
        with patch.object(dm_mujoco.Physics, "contexts", None):
            return self._vectors(self._env.reset().observation), {}

    def step(self, action: np.ndarray) -> tuple[dict[str, np.ndarray], float, bool, bool, dict[str, Any]]:
        step = self._env.step(action)
        terminated = step.last() and step.discount == 0.0
        return (
            self._vectors(step.observation),
            float(step.reward),
            terminated,
            step.last() and not terminated,
            {},
        )

    def close(self) -> None:
        self._env.close()
