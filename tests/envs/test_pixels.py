"""Frames that the project draws itself, and what frames have to be: size, type, one a decision."""

import warnings

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.utils.env_checker import check_env
from hypothesis import given, settings
from hypothesis import strategies as st

from mulv.agents import preset
from mulv.core.errors import EnvironmentFault, MulvError
from mulv.envs import PIXEL_TASKS, adapt, env_spec, gymnasium_id, make_env, preflight, register, resolve
from mulv.envs.rendering.frames import FRAME_SHAPE, FrameObservation
from mulv.envs.rendering.pendulum import draw_rod
from mulv.run.config import RunConfig
from mulv.run.train import complete, train

angles = st.floats(-np.pi, np.pi)


def angle_of(frame: np.ndarray) -> float:
    """A naive reading: where the red pixels lie, seen from the middle of the frame."""
    red = frame[..., 0].astype(float) - frame[..., 1]
    rows, columns = np.indices(red.shape)
    right, up = ((columns - 31.5) * red).sum(), ((31.5 - rows) * red).sum()
    return float(np.arctan2(-right, up))


def degrees_apart(a: float, b: float) -> float:
    return abs(np.degrees((a - b + np.pi) % (2 * np.pi) - np.pi))


def at(env: gym.Env, theta: float, speed: float) -> np.ndarray:
    """The frame of a pendulum in a chosen state."""
    env.unwrapped.state = np.array([theta, speed])
    return env.render()


@given(angles)
def test_a_frame_tells_the_angle_to_a_degree(theta):
    assert degrees_apart(angle_of(draw_rod(theta)), theta) < 1.0


def test_a_rod_without_its_colour_would_not_be_read():
    grey = draw_rod(0.7)
    grey[..., 0] = grey[..., 1]
    assert degrees_apart(angle_of(grey), 0.7) > 10


@given(angles)
@settings(max_examples=20)
def test_edges_are_smooth(theta):
    """Half a degree changes the frame, although at the rod's end that is a quarter of a pixel."""
    assert not np.array_equal(draw_rod(theta), draw_rod(theta + np.radians(0.5)))


@pytest.fixture(scope="module")
def pendulum():
    env = make_env("Pendulum-px")
    env.reset(seed=0)
    yield env
    env.close()


@given(angles, st.floats(-8, 8), st.floats(-8, 8))
@settings(max_examples=20)
def test_speed_is_not_seen_in_one_frame(pendulum, theta, speed, other):
    np.testing.assert_array_equal(at(pendulum, theta, speed), at(pendulum, theta, other))


def test_two_frames_show_the_speed(pendulum):
    shown = []
    for speed in (1.0, -1.0):
        before = at(pendulum, 0.5, speed)
        after = pendulum.step(np.zeros(1, np.float32))[0]
        shown.append(angle_of(after) - angle_of(before))
    assert shown[0] > shown[1] + 0.1


def test_the_torque_is_not_drawn(pendulum):
    frames = []
    for torque in (-1.0, 1.0):
        pendulum.reset(seed=0)
        pendulum.step(np.array([torque], np.float32))
        assert pendulum.unwrapped.last_u == 2 * torque
        frames.append(at(pendulum, 0.3, 0.0))
    np.testing.assert_array_equal(*frames)


def test_a_decision_is_two_steps_and_an_episode_a_hundred_decisions(pendulum):
    pendulum.reset(seed=0)
    ends = [any(pendulum.step(np.zeros(1, np.float32))[2:4]) for _ in range(100)]
    assert ends == [False] * 99 + [True]


def test_action_repeat_is_an_option():
    once, twice = make_env("Pendulum-px", action_repeat=1), make_env("Pendulum-px")
    for env in (once, twice):
        env.reset(seed=4)
    push = np.ones(1, np.float32)
    rewards = [once.step(push)[1] for _ in range(2)]
    frame, reward, *_ = twice.step(push)
    np.testing.assert_array_equal(frame, once.render())
    assert reward == pytest.approx(sum(rewards))


def test_frames_are_a_function_of_seed_and_actions(pendulum):
    def frames(seed):
        rng = np.random.default_rng(0)
        shown = [pendulum.reset(seed=seed)[0]]
        return np.stack(shown + [pendulum.step(rng.uniform(-1, 1, 1))[0] for _ in range(5)])

    np.testing.assert_array_equal(frames(1), frames(1))
    assert not np.array_equal(frames(1), frames(2))


def test_gymnasium_makes_the_task_and_checks_it():
    register()
    env = gym.make(gymnasium_id(PIXEL_TASKS["Pendulum-px"]), disable_env_checker=True)
    assert env.observation_space == spaces.Box(0, 255, (64, 64, 3), np.uint8)
    with warnings.catch_warnings():  # it would rather check what is not wrapped
        warnings.simplefilter("ignore")
        check_env(make_env("Pendulum-px"), skip_render_check=True)
    spec = env_spec(env)
    assert (spec.obs_shape, spec.obs_dtype, spec.act_dim) == (FRAME_SHAPE, "uint8", 1)


@pytest.mark.filterwarnings("ignore:.*is different from the unwrapped version")
@pytest.mark.filterwarnings("error::UserWarning")
def test_what_gymnasium_makes_passes_its_checks_rendering_included():
    register()
    env = gym.make("mulv/Pendulum-px-v0")
    check_env(env)
    assert env.metadata["render_modes"] == ["rgb_array"]
    again = env.spec.make(render_mode="rgb_array")
    frame, _ = again.reset(seed=0)
    np.testing.assert_array_equal(again.render(), frame)


def test_agents_of_vectors_refuse_frames_before_anything_is_written(tmp_path):
    with pytest.raises(MulvError, match=r"learns from vectors, .* frames \(64, 64, 3\)"):
        train(RunConfig(task="Pendulum-px", algo="sac", agent=preset("sac", "default")), tmp_path / "run")
    assert not list(tmp_path.iterdir())


def test_a_run_takes_the_tasks_own_action_repeat_unless_told():
    assert complete(RunConfig(task="Pendulum-px")).action_repeat == 2
    assert complete(RunConfig(task="Pendulum-px", action_repeat=4)).action_repeat == 4
    assert complete(RunConfig(task="Pendulum-P")).action_repeat == 1


def test_meta_world_that_is_not_installed_is_one_line(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(MulvError, match=r"pip install 'mulv\[metaworld\]'"):
        resolve("metaworld/reach-px")


# ------------------------------------------------------------------------------------------------ bad frames


class Camera(gym.Env):
    """A user's environment that shows pictures, perhaps not those that it declares."""

    action_space = spaces.Box(-1.0, 1.0, (1,), np.float32)

    def __init__(self, declared: spaces.Box, shown: np.ndarray | None = None):
        self.observation_space = declared
        self.shown = np.zeros(declared.shape, declared.dtype) if shown is None else shown

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return self.shown, {}

    def step(self, action):
        return self.shown, 0.0, False, False, {}


FRAMES = spaces.Box(0, 255, (64, 64, 3), np.uint8)


def test_a_users_frames_pass_unchanged():
    shown = np.random.default_rng(0).integers(0, 255, FRAME_SHAPE, np.uint8)
    env = adapt(Camera(FRAMES, shown))
    np.testing.assert_array_equal(env.reset(seed=0)[0], shown)
    assert env.observation_space == FRAMES


@pytest.mark.parametrize(
    "declared",
    [
        spaces.Box(0, 255, (84, 84, 3), np.uint8),
        spaces.Box(0, 255, (3, 64, 64), np.uint8),
        spaces.Box(0, 255, (64, 64), np.uint8),
        spaces.Box(0, 1, (64, 64, 3), np.float32),
    ],
)
def test_frames_of_another_size_or_type_are_refused(declared):
    with pytest.raises(MulvError, match=r"frames must be \(64, 64, 3\) of uint8") as error:
        adapt(Camera(declared))
    assert str(declared.shape) in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("shown", [np.zeros((32, 32, 3), np.uint8), np.zeros(FRAME_SHAPE, np.float32)])
def test_frames_that_are_not_as_declared_are_named_before_training(shown):
    with pytest.raises(EnvironmentFault, match="gave an observation of shape"):
        preflight(lambda: adapt(Camera(FRAMES, shown)))


@pytest.mark.parametrize("drawn", [np.zeros((32, 32, 3), np.uint8), np.zeros(FRAME_SHAPE, np.float32)])
def test_a_drawing_of_another_size_or_type_is_refused(drawn):
    class View:
        def __call__(self, env):
            return drawn

        def close(self):
            pass

    with pytest.raises(EnvironmentFault, match="a frame must be"):
        FrameObservation(gym.make("Pendulum-v1"), View()).reset(seed=0)


@pytest.mark.parametrize("options", [{"camera": 1}, {"render_quality": "fast"}])
def test_tasks_without_cameras_refuse_options_of_cameras(options):
    for name in ("Pendulum-px", "Pendulum-P"):
        with pytest.raises(MulvError, match="--camera and --render-quality"):
            make_env(name, **options)


@pytest.mark.parametrize(
    ("typo", "meant"),
    [("pendulum-px", "Pendulum-px"), ("cheeta-run-px", "cheetah-run-px"), ("metaworld/reech-px", "reach-px")],
)
def test_a_typo_gets_the_nearest_pixel_task(typo, meant):
    with pytest.raises(MulvError, match=meant):
        resolve(typo)
