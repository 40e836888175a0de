"""From a name to an environment: mulv's own tasks, any dm_control task, any Gymnasium id."""

import importlib.util
from typing import Any

import gymnasium as gym
from gymnasium import spaces

from mulv.core.errors import MulvError
from mulv.core.names import nearest
from mulv.core.spec import EnvSpec
from mulv.envs.mbbl import MBBLReward
from mulv.envs.tasks import TASKS, Task, gymnasium_id
from mulv.envs.wrappers import ActionRepeat, Keep, KeepObservation, UnitAction, parse_keep

DEFAULT_ENV_STEPS = 200_000


def register() -> None:
    """Make every task a Gymnasium id, such as `mulv/HalfCheetah-P-v0` (called by `import mulv`)."""
    for task in TASKS.values():
        if gymnasium_id(task) not in gym.registry:
            gym.register(
                gymnasium_id(task), entry_point="mulv.envs.make:make_task", kwargs={"task": task.name}
            )


def make_task(task: str, **kwargs: Any) -> gym.Env:
    """One of mulv's own tasks, by its name."""
    return _build(TASKS[task], kwargs)


def resolve(name: str, keep: str | None = None) -> Task:
    """The task a person means by `name`; a typo gets the nearest name."""
    short = _short(name)
    chosen = parse_keep(keep)
    if short in TASKS:
        if chosen is not None:
            raise MulvError(f"{short} says itself what is kept; --keep is for other environments")
        return TASKS[short]
    if short.lower().startswith(("metaworld/", "meta-world/")) and not importlib.util.find_spec("metaworld"):
        raise MulvError(f"{name} needs the extra metaworld: pip install 'mulv[metaworld]'")
    for id_ in (short, f"mulv/{short}-v0"):  # the second: a POMDP of the theory room
        if id_ in gym.registry:
            horizon = gym.registry[id_].max_episode_steps or 0
            return Task(short, "gymnasium", id_, chosen, horizon, DEFAULT_ENV_STEPS)
    # Only a name that is none of ours pays for importing dm_control.
    from mulv.envs.dm_control import suite_tasks

    if short in suite_tasks():
        return Task(short, "dm_control", short, chosen, 1000, DEFAULT_ENV_STEPS)
    near = nearest(short, [*TASKS, *suite_tasks(), *map(_short, gym.registry)])
    hint = f"did you mean {near!r}?" if near else "`mulv envs` lists the tasks"
    raise MulvError(f"no task is called {name!r}; {hint}")


def _short(name: str) -> str:
    """A name without the frame it has at Gymnasium, if that is ours."""
    return name.removeprefix("mulv/").removesuffix("-v0") if name.startswith("mulv/") else name


def make_env(name: str, keep: str | None = None, action_repeat: int = 1, **kwargs: Any) -> gym.Env:
    """A task as agents see it: a float32 vector, actions in [-1, 1] (or discrete), seeded by `reset`."""
    return _build(resolve(name, keep), kwargs, action_repeat)


def adapt(env: gym.Env, keep: Keep = None) -> gym.Env:
    """Any Gymnasium environment as agents see it."""
    env = KeepObservation(env, keep)
    if isinstance(env.action_space, spaces.Box):
        return UnitAction(env)
    if not isinstance(env.action_space, spaces.Discrete) or env.action_space.start != 0:
        raise MulvError(f"action space {env.action_space} is not supported; use Box or Discrete from 0")
    return env


def env_spec(env: gym.Env | gym.vector.VectorEnv) -> EnvSpec:
    """The shapes that an agent is built for."""
    if isinstance(env, gym.vector.VectorEnv):
        obs, act = env.single_observation_space, env.single_action_space
    else:
        obs, act = env.observation_space, env.action_space
    discrete = isinstance(act, spaces.Discrete)
    act_dim = int(act.n) if isinstance(act, spaces.Discrete) else act.shape[0]  # type: ignore[index]
    return EnvSpec(tuple(obs.shape or ()), act_dim, discrete, str(obs.dtype))


def _build(task: Task, kwargs: dict[str, Any], action_repeat: int = 1) -> gym.Env:
    env: gym.Env
    if task.suite == "dm_control":
        from mulv.envs.dm_control import DMControlEnv

        env = DMControlEnv(task.id, **kwargs)
    else:
        try:
            env = gym.make(task.id, disable_env_checker=True, **task.kwargs, **kwargs)
        except (gym.error.Error, ImportError, TypeError) as error:
            raise MulvError(f"{task.id} could not be made: {error}") from error
    if task.reward == "mbbl":
        env = MBBLReward(env, task.id)
    env = adapt(env, task.keep)
    return ActionRepeat(env, action_repeat) if action_repeat > 1 else env
