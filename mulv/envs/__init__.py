"""The Gymnasium side of the house: NumPy only."""

from mulv.envs.lanes import Lanes, preflight
from mulv.envs.make import adapt, env_spec, make_env, register, resolve
from mulv.envs.tasks import TASKS, Task, gymnasium_id

__all__ = [
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
