"""Draws a pendulum without a graphics library: an anti-aliased rod on a plain background."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from mulv.envs.rendering.frames import SIZE

BACKGROUND, ROD, PIVOT = (np.array(rgb, np.float32) for rgb in ((255, 255, 255), (204, 77, 77), (0, 0, 0)))
ROD_LENGTH, ROD_RADIUS, PIVOT_RADIUS = 26.0, 3.5, 1.5  # pixels

# Pixel centres relative to the pivot: x to the right, y upwards.
_X, _Y = np.meshgrid(np.arange(SIZE) - (SIZE - 1) / 2, (SIZE - 1) / 2 - np.arange(SIZE))


@dataclass(frozen=True)  # so that any two are equal, as `Draw` requires
class PendulumView:
    """Draws Gymnasium's pendulum at its angle; speed and torque are not visible."""

    def __call__(self, env: Any) -> np.ndarray:
        return draw_rod(float(env.state[0]))

    def close(self) -> None:
        pass


def draw_rod(theta: float) -> np.ndarray:
    """A frame with the rod at an angle, 0 upright and counter-clockwise positive."""
    tip_x, tip_y = -np.sin(theta), np.cos(theta)
    along = np.clip(_X * tip_x + _Y * tip_y, 0.0, ROD_LENGTH)
    from_rod = np.hypot(_X - along * tip_x, _Y - along * tip_y)
    frame = _paint(np.broadcast_to(BACKGROUND, (SIZE, SIZE, 3)), ROD, from_rod, ROD_RADIUS)
    return np.rint(_paint(frame, PIVOT, np.hypot(_X, _Y), PIVOT_RADIUS)).astype(np.uint8)


def _paint(frame: np.ndarray, colour: np.ndarray, distance: np.ndarray, radius: float) -> np.ndarray:
    """The frame with everything within `radius` coloured; pixels on the edge are blended."""
    share = np.clip(radius + 0.5 - distance, 0.0, 1.0)[..., None]
    return frame * (1 - share) + colour * share
