"""Frames of MuJoCo's cameras: against another renderer, and where there is no GL or no camera."""

import copy
import functools
import json
import os
import subprocess
import sys

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.envs.mujoco.mujoco_rendering import MujocoRenderer
from gymnasium.utils.env_checker import check_env

from mulv.core.errors import MulvError
from mulv.envs import PIXEL_TASKS, env_spec, make_env, register, simulators
from mulv.envs.dm_control import suite_tasks
from mulv.envs.rendering import camera as render
from mulv.envs.rendering import doctor, gl
from mulv.envs.rendering.camera import CameraView
from mulv.envs.rendering.gl import GL, Trial, find_gl, try_backend
from mulv.run.config import RunConfig
from mulv.run.train import complete

try:
    find_gl()
except MulvError as _error:
    pytest.skip(str(_error), allow_module_level=True)


@functools.cache
def cheetah(quality: str) -> gym.Env:
    return make_env("cheetah-run-px", render_quality=quality)


def posed(env: gym.Env, twist: float = 0.0, speed: float = 0.0) -> np.ndarray:
    """The frame of a body in a chosen state."""
    env.reset(seed=0)
    physics = env.unwrapped.physics
    physics.data.qpos[-1] += twist
    physics.data.qvel[:] = speed
    physics.forward()
    return env.render()


def test_the_suites_tasks_are_those_that_are_listed():
    listed = {task.id for task in PIXEL_TASKS.values() if task.simulator == "dm_control"}
    assert listed == {*suite_tasks(), "manipulation-reach_duplo"}


def test_an_arm_whose_model_is_compiled_anew_at_each_reset_is_drawn_and_seeded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    closed, close = [], render._Scene.close
    monkeypatch.setattr(render._Scene, "close", lambda scene: closed.append(scene) or close(scene))
    env = make_env("manipulation-reach_duplo-px", render_quality="fast")
    first, other, again = (env.reset(seed=seed)[0] for seed in (1, 2, 1))
    np.testing.assert_array_equal(first, again)
    assert first.std() > 5  # not one colour
    assert not np.array_equal(first, other)
    assert len(closed) == 2  # what GL held of the models before
    rewards, truncated = [], False
    while not truncated:
        shown, reward, terminated, truncated, _ = env.step(env.action_space.sample())
        assert not terminated
        rewards.append(reward)
    assert len(rewards) == 125  # ten seconds of 40 ms, each action taken twice
    assert not np.array_equal(shown, again)
    assert all(0 <= reward <= 2 for reward in rewards)


def test_what_agents_are_built_for():
    spec = env_spec(cheetah("fast"))
    assert (spec.obs_shape, spec.obs_dtype, spec.act_dim) == ((64, 64, 3), "uint8", 6)
    assert cheetah("fast").action_space == gym.spaces.Box(-1.0, 1.0, (6,), np.float32)


def test_positions_are_seen_and_velocities_are_not():
    env = cheetah("fast")
    np.testing.assert_array_equal(posed(env, speed=0.0), posed(env, speed=5.0))
    assert not np.array_equal(posed(env), posed(env, twist=0.3))


def test_same_seed_same_frames():
    def frames(seed):
        env, rng = cheetah("fast"), np.random.default_rng(0)
        return np.stack([env.reset(seed=seed)[0]] + [env.step(rng.uniform(-1, 1, 6))[0] for _ in range(2)])

    np.testing.assert_array_equal(frames(1), frames(1))
    assert not np.array_equal(frames(1), frames(2))


def test_paper_quality_is_what_another_renderer_draws(monkeypatch):
    monkeypatch.setenv("MUJOCO_GL", find_gl().backend)
    frame = posed(cheetah("paper"), twist=0.3)
    physics = cheetah("paper").unwrapped.physics
    other = MujocoRenderer(physics.model.ptr, physics.data.ptr, width=64, height=64, camera_id=0)
    np.testing.assert_allclose(frame.astype(int), other.render("rgb_array").astype(int), atol=1)


def test_fast_quality_is_nearly_the_same_picture():
    paper, fast = (posed(cheetah(quality), twist=0.3).astype(float) for quality in ("paper", "fast"))
    assert 0 < np.abs(paper - fast).mean() < 4
    assert abs(paper.mean() - fast.mean()) < 1
    assert np.abs(paper - posed(cheetah("paper"), twist=-0.9)).mean() > 0.5  # such a pose is a difference


def test_cameras_have_names_and_numbers():
    env = cheetah("fast").unwrapped
    env.reset(seed=0)
    side, back, number = (CameraView(env, camera, "fast")(env) for camera in ("side", "back", "1"))
    np.testing.assert_array_equal(back, number)
    assert not np.array_equal(side, back)


@pytest.mark.parametrize("camera", ["corner2", 2, "-1"])
def test_a_camera_that_does_not_exist_is_named_with_those_that_do(camera):
    with pytest.raises(MulvError, match=r"no camera .*0 \(side\), 1 \(back\)"):
        make_env("cheetah-run-px", camera=camera)


def test_new_terrain_is_drawn():
    env, fresh = (make_env("quadruped-escape-px", render_quality="fast") for _ in range(2))
    env.reset(seed=1)
    second, expected = env.reset(seed=2)[0], fresh.reset(seed=2)[0]
    np.testing.assert_array_equal(second, expected)
    env._draw._scene._upload_terrain = lambda: None
    assert not np.array_equal(env.reset(seed=3)[0], fresh.reset(seed=3)[0])


@pytest.mark.filterwarnings("ignore:.*is different from the unwrapped version")
@pytest.mark.filterwarnings("error::UserWarning")
def test_what_gymnasium_makes_passes_its_checks_rendering_included():
    register()
    env = gym.make("mulv/cheetah-run-px-v0")
    check_env(env)
    assert env.metadata["render_modes"] == ["rgb_array"]
    env.close()


def test_views_are_equal_by_camera_and_quality():
    env = cheetah("fast").unwrapped
    view = CameraView(env, "back", "fast")
    assert view == CameraView(env, 1, "fast")
    assert hash(view) == hash(CameraView(env, 1, "fast"))
    assert view not in (CameraView(env, "side", "fast"), CameraView(env, "back", "paper"))


def test_a_copy_of_a_view_leaves_what_the_view_holds_of_gl():
    env = cheetah("fast").unwrapped
    view = CameraView(env, "back", "fast")
    frame = view(env)
    other = copy.deepcopy(view)
    assert other == view
    other.close()
    np.testing.assert_array_equal(view(env), frame)
    view.close()


# ----------------------------------------------------------------------------------------------- finding GL


def loaded_by(task: str) -> set[str]:
    """Which GL libraries a process has loaded after a reset of a task."""
    reset = f"from mulv.envs import make_env; make_env({task!r}).reset(seed=0)"
    code = f"{reset}; print(open('/proc/self/maps').read())"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return {name for name in ("libEGL", "libGL.", "libOpenGL", "libOSMesa") if name in result.stdout}


def test_vectors_load_no_gl_and_frames_do():
    assert loaded_by("cheetah-run-P") == set()
    assert loaded_by("cheetah-run-px")


@pytest.fixture
def unknown_gl(monkeypatch):
    """As in a process that has not looked for GL yet."""
    for name in (gl.CHOSEN, "MUJOCO_GL"):
        monkeypatch.delenv(name, raising=False)
    find_gl.cache_clear()
    try_backend.cache_clear()
    yield monkeypatch
    find_gl.cache_clear()
    try_backend.cache_clear()


def test_without_a_driver_the_package_to_install_is_one_line(unknown_gl):
    unknown_gl.setenv("__EGL_VENDOR_LIBRARY_FILENAMES", "/nonexistent")
    unknown_gl.setenv("MUJOCO_GL", "egl")
    with pytest.raises(MulvError, match="apt-get install -y libegl1") as error:
        find_gl()
    assert "\n" not in str(error.value)


def test_the_second_backend_is_taken_where_the_first_fails(unknown_gl):
    trials = {"egl": Trial("egl", None, "no device"), "osmesa": Trial("osmesa", GL("osmesa", "llvmpipe"))}
    unknown_gl.setattr(gl, "try_backend", trials.__getitem__)
    assert find_gl() == GL("osmesa", "llvmpipe")
    assert json.loads(os.environ[gl.CHOSEN])["backend"] == "osmesa"


def test_quality_is_recorded_with_the_run():
    assert complete(RunConfig(task="cheetah-run-px")).render_quality == find_gl().quality
    assert complete(RunConfig(task="cheetah-run-px", render_quality="paper")).render_quality == "paper"
    assert complete(RunConfig(task="cheetah-run-P")).render_quality is None


def test_the_doctor_names_what_works_and_what_to_install(unknown_gl):
    unknown_gl.setattr(simulators.importlib.util, "find_spec", lambda name: None)
    unknown_gl.setattr(doctor, "frames_per_second", lambda task, quality: 7.0)
    trials = {"egl": Trial("egl", None, "no device"), "osmesa": Trial("osmesa", GL("osmesa", "llvmpipe"))}
    for module in (gl, doctor):
        unknown_gl.setattr(module, "try_backend", trials.__getitem__)
    report = "\n".join(doctor.examine())
    assert "no device; apt-get install -y libegl1" in report
    assert "works: llvmpipe, on the CPU" in report
    assert "pip install 'mulv[metaworld]'" in report
    assert "--render-quality fast" in report


def test_a_frame_rate_counts_frames(monkeypatch):
    clock = iter([0.0, *np.arange(0.25, 5, 0.25)])
    monkeypatch.setattr(doctor.time, "perf_counter", lambda: next(clock))
    assert doctor.frames_per_second("Pendulum-px", None) == 3 / 1.25  # drawn at 0.25, 0.5, 0.75


@pytest.mark.parametrize(
    ("renderer", "quality"),
    [("llvmpipe (LLVM 15.0.6, 256 bits)", "fast"), ("NVIDIA A100-SXM4-40GB/PCIe/SSE2", "paper")],
)
def test_quality_follows_who_draws(renderer, quality):
    assert GL("egl", renderer).quality == quality
