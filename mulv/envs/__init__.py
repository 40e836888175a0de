"""The Gymnasium side of the house: NumPy only."""

from mulv.envs.lanes import Lanes
from mulv.envs.make import adapt, env_spec, make_env, register, resolve
from mulv.envs.pixel_tasks import PIXEL_TASKS
from mulv.envs.preflight import preflight
from mulv.envs.tasks import TASKS, Task, gymnasium_id

__all__ = [
    "PIXEL_TASKS",
    "TASKS",
    "Lanes",
    "Task",
    "adapt",
    "env_spec",
    "gymnasium_id",
    "make_env",
    "preflight",
    "register",
    "resolve",
]
