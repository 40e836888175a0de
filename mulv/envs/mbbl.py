"""Rewards and terminations of the model-based benchmark (MBBL, gym 0.9) that the paper's table follows.

Rewards are of the state the action was taken in. HalfCheetah's differs from Gymnasium's only in that;
Hopper, Walker and Ant add a height term and end early; Humanoid pays 0.25/0.015 per unit of speed;
Pendulum is paid for **hanging still**.
"""

from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.utils import RecordConstructorArgs

Reward = Callable[[Any, np.ndarray], float]
Ended = Callable[[Any], bool]


def _never(env: Any) -> bool:
    return False


def _hopper_fell(env: Any) -> bool:
    _, height, angle = env.data.qpos[:3]
    return bool(height <= 0.7 or abs(angle) >= 0.2)


def _walker_fell(env: Any) -> bool:
    _, height, angle = env.data.qpos[:3]
    return bool(height <= 0.8 or height >= 2.0 or abs(angle) >= 1.0)


def _ant_fell(env: Any) -> bool:
    return bool(not 0.2 <= env.data.qpos[2] <= 1.0)


def _humanoid_fell(env: Any) -> bool:
    return bool(not 1.0 <= env.data.qpos[2] <= 2.0)


def _cheetah_reward(env: Any, action: np.ndarray) -> float:
    return env.data.qvel[0] - 0.1 * np.square(action).sum()


def _upright_reward(height_position: int, target: float, fell: Ended) -> Reward:
    """Speed, a height term, a control cost, and 1 for being up."""

    def reward(env: Any, action: np.ndarray) -> float:
        height = env.data.qpos[height_position]
        return (
            env.data.qvel[0]
            - 3.0 * (height - target) ** 2
            - 0.1 * np.square(action).sum()
            + (0.0 if fell(env) else 1.0)
        )

    return reward


def _humanoid_reward(env: Any, action: np.ndarray) -> float:
    impact = min(5e-7 * np.square(env.data.cfrc_ext).sum(), 10.0)
    alive = 0.0 if _humanoid_fell(env) else 5.0
    return 0.25 / 0.015 * env.data.qvel[0] - 0.1 * np.square(action).sum() - impact + alive


def _pendulum_reward(env: Any, action: np.ndarray) -> float:
    theta, speed = env.state
    torque = np.clip(action, -env.max_torque, env.max_torque)[0]
    return -(np.cos(theta) + 0.1 * abs(np.sin(theta)) + 0.1 * speed**2 + 0.001 * torque**2)


RULES: dict[str, tuple[Reward, Ended]] = {
    "HalfCheetah-v5": (_cheetah_reward, _never),
    "Hopper-v5": (_upright_reward(1, 1.3, _hopper_fell), _hopper_fell),
    "Walker2d-v5": (_upright_reward(1, 1.3, _walker_fell), _walker_fell),
    "Ant-v5": (_upright_reward(2, 0.57, _ant_fell), _ant_fell),
    "Humanoid-v5": (_humanoid_reward, _humanoid_fell),
    "Pendulum-v1": (_pendulum_reward, _never),
}


class MBBLReward(gym.Wrapper, RecordConstructorArgs):
    """Replace an environment's reward and termination by MBBL's; actions are in the simulator's units."""

    def __init__(self, env: gym.Env, id: str):
        RecordConstructorArgs.__init__(self, id=id)
        gym.Wrapper.__init__(self, env)
        self._reward, self._ended = RULES[id]

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        reward = float(self._reward(self.unwrapped, action))
        obs, _, _, truncated, info = self.env.step(action)
        return obs, reward, self._ended(self.unwrapped), truncated, info
