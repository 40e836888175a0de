"""Environments: tasks, simulators, wrappers and vector environments. NumPy only, no JAX."""

from mulv.envs.make import adapt, env_spec, is_task, make_env, register, resolve
from mulv.envs.pixel_tasks import PIXEL_TASKS
from mulv.envs.preflight import preflight
from mulv.envs.tasks import TASKS, Task, gymnasium_id
from mulv.envs.translation import Translation
from mulv.envs.vector_env import VectorEnv

__all__ = [
    "PIXEL_TASKS",
    "TASKS",
    "Task",
    "Translation",
    "VectorEnv",
    "adapt",
    "env_spec",
    "gymnasium_id",
    "is_task",
    "make_env",
    "preflight",
    "register",
    "resolve",
]
