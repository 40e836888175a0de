"""Frames as observations, for tasks whose name ends in -px."""

from typing import Any, Protocol

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.utils import RecordConstructorArgs

from mulv.core.errors import EnvironmentFault, MulvError
from mulv.core.spec import FRAME_SHAPE

SIZE = FRAME_SHAPE[0]  # height and width in pixels
FRAME_SPACE = spaces.Box(0, 255, FRAME_SHAPE, np.uint8)


class Draw(Protocol):
    """Renders a simulator's present state.

    Gymnasium keeps a deep copy in an environment's spec and compares specs. So a deep copy must hold no
    objects of a graphics library, and two that draw in the same way must be equal.
    """

    def __call__(self, env: Any) -> np.ndarray: ...

    def close(self) -> None:
        """Free the resources of rendering."""


class FrameObservation(gym.Wrapper, RecordConstructorArgs):
    """Makes a rendered frame the observation; wraps `ActionRepeat`, so that it renders once per decision."""

    def __init__(self, env: gym.Env, draw: Draw):
        RecordConstructorArgs.__init__(self, draw=draw)
        gym.Wrapper.__init__(self, env)
        self.observation_space = FRAME_SPACE
        self.metadata = {**env.metadata, "render_modes": ["rgb_array"]}
        self._draw = draw

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        _, info = self.env.reset(seed=seed, options=options)
        return self._frame(), info

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        _, reward, terminated, truncated, info = self.env.step(action)
        return self._frame(), float(reward), terminated, truncated, info

    def render(self) -> Any:
        return self._frame()

    def close(self) -> None:
        self._draw.close()
        super().close()

    def _frame(self) -> np.ndarray:
        frame = self._draw(self.env.unwrapped)
        if frame.shape != FRAME_SHAPE or frame.dtype != np.uint8:
            raise EnvironmentFault(
                f"a frame must be {FRAME_SHAPE} of uint8; this one is {frame.shape} of {frame.dtype}"
            )
        return frame


def is_image(space: spaces.Space) -> bool:
    """Whether observations are images rather than vectors."""
    return isinstance(space, spaces.Box) and len(space.shape) >= (2 if space.dtype == np.uint8 else 3)


def check_frames(space: spaces.Space) -> None:
    """Raise an error unless images have FRAME_SHAPE, the only shape that networks and replay support."""
    if space.shape != FRAME_SHAPE or space.dtype != np.uint8:
        raise MulvError(
            f"observations are images {space.shape} of {space.dtype}; frames must be {FRAME_SHAPE} of uint8: "
            f"wrap the environment in gymnasium.wrappers.ResizeObservation(env, ({SIZE}, {SIZE}))"
        )
