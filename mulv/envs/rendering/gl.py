"""Finding an OpenGL that works without a display: EGL, then OSMesa, each tried in a process of its own.

A driver that cannot be used may crash whoever tries it, and one process can load only one of the two; so the
trial is somebody else's. Nothing here loads GL into this process before the first frame is drawn.
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
CHOSEN = "MULV_GL"  # tells worker processes what was found, so that they need not try again
SOFTWARE = ("llvmpipe", "softpipe", "swrast", "software")


@dataclass(frozen=True)
class GL:
    """An OpenGL that drew a frame."""

    backend: str
    renderer: str  # what it calls itself, such as llvmpipe or a GPU's name

    @property
    def software(self) -> bool:
        """Whether frames are drawn by the CPU."""
        return any(name in self.renderer.lower() for name in SOFTWARE)

    @property
    def quality(self) -> Quality:
        """What `--render-quality` is unless told: the CPU pays dearly for smooth edges and shadows."""
        return "fast" if self.software else "paper"


@dataclass(frozen=True)
class Trial:
    """What became of one backend: the GL it gave, or the last line of what it said."""

    backend: str
    gl: GL | None
    problem: str = ""


@functools.cache
def try_backend(backend: str) -> Trial:
    """Draw one frame in another process."""
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
    """The first that works; MUJOCO_GL names another order. Where none does, what to install is one line."""
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
    """MuJoCo's own off-screen context, whatever MUJOCO_GL said when MuJoCo was loaded."""
    return importlib.import_module(f"mujoco.{backend}").GLContext(width, height)
