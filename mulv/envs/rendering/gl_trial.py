"""Renders one frame with the named backend and prints the renderer's name; run by `gl.try_backend`."""

import ctypes.util
import json
import sys

import mujoco
import numpy as np

from mulv.envs.rendering.gl import open_context

SCENE = """
<mujoco>
  <worldbody>
    <light pos="0 0 3"/>
    <camera name="above" pos="0 0 2"/>
    <geom type="sphere" size="0.5" rgba="1 0 0 1"/>
  </worldbody>
</mujoco>
"""
EDGE = 16
LIBRARY = {"egl": "EGL", "osmesa": "OSMesa"}


def main(backend: str) -> None:
    """Exit with an error unless the rendered frame shows the ball."""
    if ctypes.util.find_library(LIBRARY[backend]) is None:
        raise SystemExit(f"lib{LIBRARY[backend]} is not installed")
    context = open_context(backend, EDGE, EDGE)
    context.make_current()
    from OpenGL import GL  # after the context, on which PyOpenGL's choice of platform depends

    model = mujoco.MjModel.from_xml_string(SCENE)
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    scene, loaded = mujoco.MjvScene(model, 10), mujoco.MjrContext(model, mujoco.mjtFontScale.mjFONTSCALE_100)
    mujoco.mjr_setBuffer(mujoco.mjtFramebuffer.mjFB_OFFSCREEN, loaded)
    camera = mujoco.MjvCamera()
    camera.type, camera.fixedcamid = mujoco.mjtCamera.mjCAMERA_FIXED, 0
    mujoco.mjv_updateScene(model, data, mujoco.MjvOption(), None, camera, mujoco.mjtCatBit.mjCAT_ALL, scene)
    frame, area = np.zeros((EDGE, EDGE, 3), np.uint8), mujoco.MjrRect(0, 0, EDGE, EDGE)
    mujoco.mjr_render(area, scene, loaded)
    mujoco.mjr_readPixels(frame, None, area, loaded)
    red, green, _ = frame[EDGE // 2, EDGE // 2].astype(int)
    if red <= green:
        raise RuntimeError("it draws nothing")
    renderer = GL.glGetString(GL.GL_RENDERER).decode()
    print(json.dumps({"backend": backend, "renderer": renderer}))


if __name__ == "__main__":
    main(sys.argv[1])
