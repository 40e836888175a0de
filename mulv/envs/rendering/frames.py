"""Frames instead of vectors: what agents see of a task whose name ends in -px."""

from typing import Any, Protocol

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.utils import RecordConstructorArgs

from mulv.core.errors import EnvironmentFault, MulvError
from mulv.core.spec import FRAME_SHAPE

SIZE = FRAME_SHAPE[0]  # pixels of an edge
FRAME_SPACE = spaces.Box(0, 255, FRAME_SHAPE, np.uint8)


class Draw(Protocol):
    """Draws a simulator's present state.

    Two that draw alike are equal, and a deep copy holds nothing of a graphics library: an environment's spec
    at Gymnasium keeps a copy, and compares it with that of another environment made from the spec.
    """

    def __call__(self, env: Any) -> np.ndarray: ...

    def close(self) -> None:
        """Give back what drawing holds on to."""


class FrameObservation(gym.Wrapper, RecordConstructorArgs):
    """The observation is a drawn frame: one a decision, so it stands outside of `ActionRepeat`."""

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
    """Whether observations are pictures rather than vectors."""
    return isinstance(space, spaces.Box) and len(space.shape) >= (2 if space.dtype == np.uint8 else 3)


def check_frames(space: spaces.Space) -> None:
    """Refuse pictures that are not of the one size that networks and replay are built for."""
    if space.shape != FRAME_SHAPE or space.dtype != np.uint8:
        raise MulvError(
            f"observations are images {space.shape} of {space.dtype}; frames must be {FRAME_SHAPE} of uint8: "
            f"wrap the environment in gymnasium.wrappers.ResizeObservation(env, ({SIZE}, {SIZE}))"
        )
