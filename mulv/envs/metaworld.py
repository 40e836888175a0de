"""Meta-world's manipulation tasks as Gymnasium environments that `reset(seed=…)` seeds."""

from typing import Any

import gymnasium as gym
import numpy as np
from metaworld.env_dict import ALL_V3_ENVIRONMENTS


class MetaWorldEnv(gym.Env[np.ndarray, np.ndarray]):
    """One of the fifty tasks, such as `drawer-close-v3`; `info["success"]` says whether it is solved.

    Positions of objects and goals are drawn at every reset, from the reset's seed. (Meta-world itself ignores
    that seed, and by default keeps one arrangement.) The goal is not part of the vector observation.
    """

    def __init__(self, id: str, render_mode: str | None = None):
        self._env = ALL_V3_ENVIRONMENTS[id]()
        self._env.seeded_rand_vec, self._env._freeze_rand_vec = True, False
        self._env._set_task_called = True  # as set_task does, which would need a pickled arrangement
        self.metadata = {"render_modes": ["rgb_array"], "render_fps": 80}
        self.render_mode = render_mode
        self.observation_space = self._env.observation_space
        self.action_space = self._env.action_space

    @property
    def model(self) -> Any:
        """MuJoCo's model."""
        return self._env.model

    @property
    def data(self) -> Any:
        """MuJoCo's state."""
        return self._env.data

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        super().reset(seed=seed)
        self._env.seed(int(self.np_random.integers(2**31)) if seed is None else seed)
        return self._env.reset()

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        obs, reward, terminated, truncated, info = self._env.step(action)
        return obs, float(reward), terminated, truncated, {"success": bool(info["success"])}

    def close(self) -> None:
        self._env.close()
