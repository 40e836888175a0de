"""Reinforcement learning where the agent does not see the state.

    import mulv
    agent = mulv.MuLV("mulv/HalfCheetah-P-v0", seed=0)
    agent.learn(total_timesteps=30_000, progress_bar=True)
    action, memory = agent.predict(obs, memory)

Importing this registers the tasks with Gymnasium and loads nothing heavy; JAX comes with the first agent.
"""

import importlib
from typing import TYPE_CHECKING, Any

from mulv.envs import register as _register_tasks
from mulv.envs.pomdp_ids import register as _register_pomdps

if TYPE_CHECKING:
    from mulv.api import SAC, DrQV2, MuLV, evaluate_policy, load
    from mulv.envs import make_env

__all__ = ["SAC", "DrQV2", "MuLV", "evaluate_policy", "load", "make_env"]

_register_tasks()
_register_pomdps()

_HOME = {
    "MuLV": "mulv.api",
    "SAC": "mulv.api",
    "DrQV2": "mulv.api",
    "evaluate_policy": "mulv.api",
    "load": "mulv.api",
    "make_env": "mulv.envs",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'mulv' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
