"""Strips: what an agent that sees frames saw, and beside it what it makes of that; as PNG files.

A column is a transition of the replay, from its oldest to its newest. For µLV-Rep its rows are the frame, the
frame as the VAE draws it, the next frame, and the next frame as predicted.
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
SCALE = 2  # pixels of the picture for one of a frame
GAP, GREY = 1, 128  # pixels of a frame between frames, and their colour


def reconstruction_grid(agent: AbstractAgent, state: compiled.Packed, replay: Replay) -> np.ndarray | None:
    """A picture of transitions from all over the replay; None where the agent draws nothing."""
    if agent.encoder is None or not isinstance(agent.batch_spec, BatchSpec):
        return None
    spec = replace(agent.batch_spec, batch_size=COLUMNS)
    lane, t = replay.transitions(spec.window)
    if not t.size:
        return None
    chosen = np.linspace(0, t.size - 1, COLUMNS).astype(np.intp)
    return tile(np.asarray(compiled.pictures(agent, state, replay.cut(spec, lane[chosen], t[chosen]))))


def tile(pictures: np.ndarray) -> np.ndarray:
    """One picture of (column, row) pictures, with grey lines between them."""
    columns, rows, height, width, colours = pictures.shape
    whole = np.full((rows * (height + GAP) - GAP, columns * (width + GAP) - GAP, colours), GREY, np.uint8)
    for (column, row), _ in np.ndenumerate(pictures[:, :, 0, 0, 0]):
        top, left = row * (height + GAP), column * (width + GAP)
        whole[top : top + height, left : left + width] = pictures[column, row]
    return enlarge(whole, SCALE)


def enlarge(picture: np.ndarray, scale: int) -> np.ndarray:
    """Every pixel as a square of them."""
    return picture.repeat(scale, axis=0).repeat(scale, axis=1)


def write_png(path: Path, picture: np.ndarray) -> None:
    """A picture as a file, whole or not at all."""
    import imageio.v3 as imageio

    with written_aside(path) as aside:
        imageio.imwrite(aside, picture, extension=".png")
