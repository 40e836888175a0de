"""Writes the first episode of an evaluation as a video."""

from importlib.util import find_spec
from pathlib import Path

import numpy as np

from mulv.core.errors import MulvError
from mulv.core.spec import EnvSpec
from mulv.run.diagnostics.reconstructions import enlarge

SCALE = 4  # enlargement of frames
FRAMES_PER_SECOND = 20


class Film:
    """Collects frames and writes them to a video file; a bad path or task is an error at construction."""

    def __init__(self, path: Path, spec: EnvSpec):
        if len(spec.obs_shape) == 1:
            raise MulvError("a film is made of frames, and this task shows vectors; train on one named -px")
        if path.suffix not in (".gif", ".mp4"):
            raise MulvError(f"{path} is neither a .gif nor an .mp4")
        if path.suffix == ".mp4" and find_spec("imageio_ffmpeg") is None:
            raise MulvError("an .mp4 needs ffmpeg: pip install 'imageio[ffmpeg]', or write a .gif")
        if not path.parent.is_dir():
            raise MulvError(f"there is no directory {path.parent} to write the film to")
        self.path = path
        self._frames: list[np.ndarray] = []

    def add(self, frame: np.ndarray) -> None:
        """Add a frame."""
        self._frames.append(enlarge(frame, SCALE))

    def write(self) -> Path:
        """Write the video; returns its path."""
        import imageio.v3 as imageio

        frames = np.stack(self._frames)
        if self.path.suffix == ".gif":
            imageio.imwrite(self.path, frames, duration=1000 / FRAMES_PER_SECOND, loop=0)
        else:
            imageio.imwrite(self.path, frames, fps=FRAMES_PER_SECOND)
        return self.path
