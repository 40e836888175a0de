"""Makes an environment by name: mulv's own tasks, any dm_control task, any Gymnasium id."""

from typing import Any

import gymnasium as gym
from gymnasium import spaces

from mulv.core.errors import MulvError
from mulv.core.names import nearest
from mulv.core.spec import EnvSpec
from mulv.envs.mbbl import MBBLReward
from mulv.envs.pixel_tasks import PIXEL_TASKS
from mulv.envs.rendering.frames import Draw, FrameObservation, check_frames, is_image
from mulv.envs.rendering.gl import Quality
from mulv.envs.rendering.pendulum import PendulumView
from mulv.envs.simulators import SIMULATORS
from mulv.envs.tasks import TASKS, Task, dm_control_task, gymnasium_id
from mulv.envs.wrappers import ActionRepeat, Keep, KeepImage, KeepObservation, UnitAction, parse_keep

DEFAULT_ENV_STEPS = 200_000
_OURS = TASKS | PIXEL_TASKS
_BY_ID = {gymnasium_id(task): task for task in _OURS.values()}


def register() -> None:
    """Make every task a Gymnasium id, such as `mulv/HalfCheetah-P-v0` (called by `import mulv`)."""
    for task in _OURS.values():
        if gymnasium_id(task) not in gym.registry:
            gym.register(
                gymnasium_id(task), entry_point="mulv.envs.make:make_task", kwargs={"task": task.name}
            )


def make_task(task: str, **kwargs: Any) -> gym.Env:
    """One of mulv's own tasks, by its name: what `gym.make` calls.

    `render_modes` lists only the mode that was asked for, because the simulator's other ones may need a
    display, GL or pygame. Tasks with frames list their own.
    """
    env = make_env(task, **kwargs)
    if not _OURS[task].pixels:
        asked = [mode for mode in env.metadata["render_modes"] if mode == env.render_mode]
        env.metadata = {**env.metadata, "render_modes": asked}
    return env


def resolve(name: str, keep: str | None = None) -> Task:
    """The task called `name`; an unknown name is an error that suggests the nearest one."""
    short = _short(name)
    chosen = parse_keep(keep)
    ours = _BY_ID.get(name) or _OURS.get(short)
    if ours is not None:
        if chosen is not None:
            raise MulvError(f"{ours.name} says itself what is kept; --keep is for other environments")
        SIMULATORS[ours.simulator].require(name)
        return ours
    for id_ in (short, f"mulv/{short}-v0"):  # the second: a POMDP of `mulv/tabular`
        if id_ in gym.registry:
            horizon = gym.registry[id_].max_episode_steps or 0
            return Task(short, "gymnasium", id_, chosen, horizon, DEFAULT_ENV_STEPS)
    # Last, because it imports dm_control, which is slow.
    from mulv.envs.dm_control import suite_tasks

    if short in suite_tasks():
        return dm_control_task(short, short, chosen)
    near = nearest(short, [*_OURS, *suite_tasks(), *map(_short, gym.registry)])
    hint = f"did you mean {near!r}?" if near else "`mulv envs` lists the tasks"
    raise MulvError(f"no task is called {name!r}; {hint}")


def is_task(name: str) -> bool:
    """Whether a name is one of mulv's own tasks, whose environments need no further wrapper."""
    return name in _BY_ID or _short(name) in _OURS


def _short(name: str) -> str:
    """A name without the `mulv/` and `-v0` of its Gymnasium id, if it has them."""
    return name.removeprefix("mulv/").removesuffix("-v0") if name.startswith("mulv/") else name


def make_env(
    name: str,
    keep: str | None = None,
    action_repeat: int | None = None,
    camera: str | int | None = None,
    render_quality: Quality | None = None,
    **kwargs: Any,
) -> gym.Env:
    """A task as agents see it: a float32 vector or a uint8 frame, actions in [-1, 1] or discrete.

    `reset` seeds it. An argument that is None takes the task's default, `render_quality` the machine's.
    """
    task = resolve(name, keep)
    repeat = task.action_repeat if action_repeat is None else action_repeat
    if task.pixels:
        return _build_pixels(task, kwargs, repeat, camera, render_quality)
    if camera is not None or render_quality is not None:
        raise MulvError(f"{task.name} is not drawn; --camera and --render-quality are for -px tasks")
    env = SIMULATORS[task.simulator].make(task, **kwargs)
    if task.reward == "mbbl":
        env = MBBLReward(env, task.id)
    return _repeated(adapt(env, task.keep), repeat)


def adapt(env: gym.Env, keep: Keep = None) -> gym.Env:
    """Wrap any Gymnasium environment as agents see it: see `make_env`."""
    if keep is not None and len(keep) == 1 and isinstance(env.observation_space, spaces.Dict):
        (name,) = keep
        if name in env.observation_space.spaces and is_image(env.observation_space[name]):
            env, keep = KeepImage(env, name), None
    if is_image(env.observation_space):
        if keep is not None:
            raise MulvError("observations are images; --keep chooses entries of vectors")
        check_frames(env.observation_space)
    else:
        env = KeepObservation(env, keep)
    if isinstance(env.action_space, spaces.Box):
        return UnitAction(env)
    if not isinstance(env.action_space, spaces.Discrete) or env.action_space.start != 0:
        raise MulvError(f"action space {env.action_space} is not supported; use Box or Discrete from 0")
    return env


def env_spec(env: gym.Env | gym.vector.VectorEnv) -> EnvSpec:
    """The shapes of an environment's observations and actions, for building agents."""
    if isinstance(env, gym.vector.VectorEnv):
        obs, act = env.single_observation_space, env.single_action_space
    else:
        obs, act = env.observation_space, env.action_space
    discrete = isinstance(act, spaces.Discrete)
    act_dim = int(act.n) if isinstance(act, spaces.Discrete) else act.shape[0]  # type: ignore[index]
    return EnvSpec(tuple(obs.shape or ()), act_dim, discrete, str(obs.dtype))


def _build_pixels(
    task: Task, kwargs: dict[str, Any], repeat: int, camera: str | int | None, quality: Quality | None
) -> gym.Env:
    env = SIMULATORS[task.simulator].make(task, **kwargs)
    if task.camera is None:
        if camera is not None or quality is not None:
            raise MulvError(f"{task.name} is drawn without cameras; leave --camera and --render-quality out")
        draw: Draw = PendulumView()
    else:
        from mulv.envs.rendering.camera import CameraView

        draw = CameraView(env.unwrapped, task.camera if camera is None else camera, quality)
        # Some tasks of dm_control have no time limit.
        env = gym.wrappers.TimeLimit(env, task.horizon)
    return FrameObservation(_repeated(UnitAction(env), repeat), draw)


def _repeated(env: gym.Env, times: int) -> gym.Env:
    return ActionRepeat(env, times) if times > 1 else env
