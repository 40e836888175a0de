"""Finds an OpenGL that works without a display: EGL, then OSMesa, each tried in a separate process.

A broken driver may crash the process that tries it, and one process can load only one of the two. Nothing
here loads GL into this process before the first frame is rendered.
"""

import functools
import importlib
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from typing import Any, Literal

from mulv.core.errors import MulvError

Quality = Literal["paper", "fast"]
BACKENDS = ("egl", "osmesa")
PACKAGES = {"egl": "libegl1 libgl1-mesa-dri", "osmesa": "libosmesa6"}  # Debian's and Ubuntu's
CHOSEN = "MULV_GL"  # environment variable with the result, so that worker processes need not try again
SOFTWARE = ("llvmpipe", "softpipe", "swrast", "software")


@dataclass(frozen=True)
class GL:
    """An OpenGL backend that has rendered a frame."""

    backend: str
    renderer: str  # its own name, such as llvmpipe or a GPU's name

    @property
    def software(self) -> bool:
        """Whether frames are rendered by the CPU."""
        return any(name in self.renderer.lower() for name in SOFTWARE)

    @property
    def quality(self) -> Quality:
        """The default of `--render-quality`: `fast` on a CPU, where smooth edges and shadows are slow."""
        return "fast" if self.software else "paper"


@dataclass(frozen=True)
class Trial:
    """The result of trying a backend: its GL, or the last line of its error."""

    backend: str
    gl: GL | None
    problem: str = ""


@functools.cache
def try_backend(backend: str) -> Trial:
    """Render one frame with a backend, in another process."""
    command = [sys.executable, "-m", "mulv.envs.rendering.gl_trial", backend]
    environment = {k: v for k, v in os.environ.items() if k not in ("PYOPENGL_PLATFORM", "MUJOCO_GL", CHOSEN)}
    try:
        result = subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment)
    except subprocess.TimeoutExpired:
        return Trial(backend, None, "it drew nothing within 120 s")
    if result.returncode == 0:
        return Trial(backend, GL(**json.loads(result.stdout.splitlines()[-1])))
    said = [line for line in result.stderr.splitlines() if line.strip()]
    died = f"the trial ended with code {result.returncode}"
    return Trial(backend, None, said[-1].strip() if said else died)


@functools.cache
def find_gl() -> GL:
    """The first backend that works (MUJOCO_GL sets the order); if none, an error says what to install."""
    if CHOSEN in os.environ:
        return GL(**json.loads(os.environ[CHOSEN]))
    wanted = os.environ.get("MUJOCO_GL", "").lower()
    trials = [try_backend(name) for name in ((wanted,) if wanted in BACKENDS else BACKENDS)]
    for trial in trials:
        if trial.gl is not None:
            os.environ[CHOSEN] = json.dumps(trial.gl.__dict__)
            return trial.gl
    raise MulvError(
        f"no OpenGL works here without a display ({'; '.join(f'{t.backend}: {t.problem}' for t in trials)}); "
        f"install one: apt-get install -y {PACKAGES['egl']}, or {PACKAGES['osmesa']}"
    )


def open_context(backend: str, width: int, height: int) -> Any:
    """An off-screen context of MuJoCo for this backend, whatever MUJOCO_GL was when MuJoCo was imported."""
    return importlib.import_module(f"mujoco.{backend}").GLContext(width, height)
