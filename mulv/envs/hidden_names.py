"""Names of the hidden entries of a task: `qvel[0] rootx` if its simulator has names, else `hidden 0`."""

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces


def hidden_names(env: gym.Env) -> list[str]:
    """A name for each entry of `hidden`, in order; an empty list if the environment hides nothing."""
    if not env.has_wrapper_attr("dropped"):
        return []
    dropped: np.ndarray = env.get_wrapper_attr("dropped")
    names = _names(env.unwrapped)
    return [names.get(int(position), f"hidden {i}") for i, position in enumerate(dropped)]


def _names(simulator: gym.Env) -> dict[int, str]:
    """Names by position in the simulator's flattened observation; positions without a name are left out."""
    space = simulator.observation_space
    if isinstance(space, spaces.Dict):
        sizes = {name: spaces.flatdim(part) for name, part in space.spaces.items()}
        return _numbered(sizes, "velocity", _dm_control_joints(simulator), {})
    structure = getattr(simulator, "observation_structure", None)  # Gymnasium's MuJoCo environments have it
    if structure is None:
        return {}
    sizes = {name: size for name, size in structure.items() if not name.startswith("skipped_")}
    skipped = {"qpos": structure.get("skipped_qpos", 0)}
    return _numbered(sizes, "qvel", _gymnasium_joints(simulator), skipped)


def _numbered(
    sizes: dict[str, int], speeds: str, joints: list[str], skipped: dict[str, int]
) -> dict[int, str]:
    """`name[i]` for the entries of each part, from `skipped` on; joint velocities with the joint's name."""
    names: list[str] = []
    for part, size in sizes.items():
        of_joints = part == speeds and size == len(joints)
        for i in range(size):
            label = f"{part}[{i + skipped.get(part, 0)}]"
            names.append(f"{label} {joints[i]}".strip() if of_joints else label)
    return dict(enumerate(names))


def _gymnasium_joints(simulator: Any) -> list[str]:
    """The joint of each entry of qvel."""
    model = simulator.model
    return [model.joint(int(joint)).name for joint in model.dof_jntid]


def _dm_control_joints(simulator: Any) -> list[str]:
    """The joint of each entry of qvel, where the simulator is dm_control's."""
    if not hasattr(simulator, "physics"):
        return []
    model = simulator.physics.model
    return [model.id2name(int(joint), "joint") for joint in model.dof_jntid]
