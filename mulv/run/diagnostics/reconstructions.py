"""Grids of frames and the agent's reconstructions of them, as PNG files.

Each column is a transition of the replay, from the oldest to the newest. For µLV-Rep the rows are the frame,
its reconstruction by the VAE, the next frame, and the prediction of the next frame.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np

from mulv.agents.base import AbstractAgent
from mulv.core.spec import BatchSpec
from mulv.data import Replay
from mulv.data.files import written_aside
from mulv.run import compiled

COLUMNS = 8
SCALE = 2  # enlargement of the grid
GAP, GREY = 1, 128  # width of the lines between frames (before enlargement), and their colour


def reconstruction_grid(agent: AbstractAgent, state: compiled.Packed, replay: Replay) -> np.ndarray | None:
    """The grid of evenly spaced transitions of the replay; None if the agent has no encoder of frames."""
    if agent.encoder is None or not isinstance(agent.batch_spec, BatchSpec):
        return None
    spec = replace(agent.batch_spec, batch_size=COLUMNS)
    lane, t = replay.transitions(spec.window)
    if not t.size:
        return None
    chosen = np.linspace(0, t.size - 1, COLUMNS).astype(np.intp)
    return tile(np.asarray(compiled.pictures(agent, state, replay.cut(spec, lane[chosen], t[chosen]))))


def tile(pictures: np.ndarray) -> np.ndarray:
    """One picture from an array (column, row) of pictures, with grey lines between them."""
    columns, rows, height, width, colours = pictures.shape
    whole = np.full((rows * (height + GAP) - GAP, columns * (width + GAP) - GAP, colours), GREY, np.uint8)
    for (column, row), _ in np.ndenumerate(pictures[:, :, 0, 0, 0]):
        top, left = row * (height + GAP), column * (width + GAP)
        whole[top : top + height, left : left + width] = pictures[column, row]
    return enlarge(whole, SCALE)


def enlarge(picture: np.ndarray, scale: int) -> np.ndarray:
    """The picture enlarged: each pixel becomes a square of `scale` × `scale` pixels."""
    return picture.repeat(scale, axis=0).repeat(scale, axis=1)


def write_png(path: Path, picture: np.ndarray) -> None:
    """Write a picture to a PNG file, atomically."""
    import imageio.v3 as imageio

    with written_aside(path) as aside:
        imageio.imwrite(aside, picture, extension=".png")
