"""Frames of a MuJoCo simulator through one of its cameras, off screen."""

import atexit
import copy
import functools
import weakref
from typing import Any, Self

import mujoco
import numpy as np

from mulv.core.errors import MulvError
from mulv.envs.rendering.frames import SIZE
from mulv.envs.rendering.gl import Quality, find_gl, open_context

MAX_GEOMS = 10_000
FAST_SHADOWS = 512  # size of the shadow map; models use 2048 or 4096


class CameraView:
    """Renders an environment with a MuJoCo model. The first frame creates the GL context, in its thread.

    Quality `paper` uses the model's settings; `fast` has no multisampling and a smaller shadow map.
    """

    def __init__(self, env: Any, camera: str | int, quality: Quality | None = None):
        self.quality: Quality = find_gl().quality if quality is None else quality
        self.camera = camera_number(_model_and_data(env)[0], camera)
        self._scene: _Scene | None = None

    def __call__(self, env: Any) -> np.ndarray:
        model, data = _model_and_data(env)
        if self._scene is None or self._scene.model is not model:
            self.close()  # a task may compile a new model at a reset
            self._scene = _Scene(model, self.camera, self.quality)
        return self._scene.draw(data)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CameraView) and self._settings == other._settings

    def __hash__(self) -> int:
        return hash(self._settings)

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        other = copy.copy(self)
        other._scene = None  # GL's objects may be freed only once
        return other

    @property
    def _settings(self) -> tuple[int, Quality]:
        return self.camera, self.quality

    def close(self) -> None:
        """Free GL's objects; the next frame creates them again."""
        if self._scene is not None:
            self._scene.close()
            self._scene = None


class _Scene:
    """The GL objects of one model."""

    def __init__(self, model: mujoco.MjModel, camera: int, quality: Quality):
        self.model = model
        set_quality(model, quality)
        self._gl = open_context(find_gl().backend, SIZE, SIZE)
        _OPEN.add(self)
        _close_all_at_exit()
        self._gl.make_current()
        self._loaded = mujoco.MjrContext(model, mujoco.mjtFontScale.mjFONTSCALE_100.value)
        self._scene = mujoco.MjvScene(model, MAX_GEOMS)
        self._option, self._camera = mujoco.MjvOption(), mujoco.MjvCamera()
        self._camera.type, self._camera.fixedcamid = mujoco.mjtCamera.mjCAMERA_FIXED.value, camera
        self._terrain = model.hfield_data.copy()

    def draw(self, data: mujoco.MjData) -> np.ndarray:
        self._gl.make_current()  # other environments in this process have their own contexts
        mujoco.mjr_setBuffer(mujoco.mjtFramebuffer.mjFB_OFFSCREEN.value, self._loaded)
        self._upload_terrain()
        every = mujoco.mjtCatBit.mjCAT_ALL.value
        mujoco.mjv_updateScene(self.model, data, self._option, None, self._camera, every, self._scene)
        area, upside_down = mujoco.MjrRect(0, 0, SIZE, SIZE), np.empty((SIZE, SIZE, 3), np.uint8)
        mujoco.mjr_render(area, self._scene, self._loaded)
        mujoco.mjr_readPixels(upside_down, None, area, self._loaded)
        return np.ascontiguousarray(upside_down[::-1])

    def close(self) -> None:
        self._gl.make_current()
        self._loaded.free()
        self._gl.free()
        _OPEN.discard(self)

    def _upload_terrain(self) -> None:
        """Upload height fields to GL again: a task may change its terrain at a reset."""
        if self._terrain.size and not np.array_equal(self._terrain, self.model.hfield_data):
            self._terrain = self.model.hfield_data.copy()
            for number in range(self.model.nhfield):
                mujoco.mjr_uploadHField(self.model, self._loaded, number)


_OPEN: weakref.WeakSet[_Scene] = weakref.WeakSet()


@functools.cache
def _close_all_at_exit() -> None:
    """Close all scenes. Registered after MuJoCo's own exit handler, so that it runs before that one."""

    def close_all() -> None:
        for scene in list(_OPEN):
            scene.close()

    atexit.register(close_all)


def set_quality(model: mujoco.MjModel, quality: Quality) -> None:
    """Set the rendering quality of a model; the simulation does not depend on it."""
    model.vis.global_.offwidth = model.vis.global_.offheight = SIZE
    if quality == "fast":
        model.vis.quality.offsamples = 0
        model.vis.quality.shadowsize = min(FAST_SHADOWS, model.vis.quality.shadowsize)


def camera_number(model: mujoco.MjModel, camera: str | int) -> int:
    """The number of a camera given by name or number; an unknown one is an error that lists all."""
    names = [model.camera(i).name for i in range(model.ncam)]
    if str(camera) in names:
        return names.index(str(camera))
    if str(camera).isdecimal() and int(camera) < model.ncam:
        return int(camera)
    there = ", ".join(f"{i} ({name})" for i, name in enumerate(names))
    raise MulvError(f"there is no camera {camera!r}; this task has {there or 'none'}")


def _model_and_data(env: Any) -> tuple[mujoco.MjModel, mujoco.MjData]:
    """MuJoCo's model and data, of a Gymnasium or a dm_control environment (which wraps them)."""
    if hasattr(env, "physics"):
        return env.physics.model.ptr, env.physics.data.ptr
    return env.model, env.data
