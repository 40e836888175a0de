"""The tasks by name: simulator, entries of the observation that an agent sees, and length of an episode."""

from dataclasses import dataclass, field, replace
from typing import Any, Literal


@dataclass(frozen=True)
class Task:
    """A named task. `keep` lists positions of a vector, or names of a dictionary's entries; None keeps all.

    With `pixels` observations are frames, from `camera` if the simulator has cameras.
    """

    name: str
    simulator: str  # a name of SIMULATORS (simulators.py)
    id: str  # Gymnasium's id, dm_control's "domain-task", or Meta-world's name
    keep: tuple[int, ...] | tuple[str, ...] | None
    horizon: int
    env_steps: int  # default length of `mulv train`
    reward: Literal["native", "mbbl"] = "native"
    kwargs: dict[str, Any] = field(default_factory=dict, hash=False)
    pixels: bool = False
    camera: str | int | None = None  # None: drawn without a camera
    action_repeat: int = 1  # default number of times each action is taken
    learning_starts: int = 1000  # default number of steps with uniform actions at the start of a run


def _span(*ranges: tuple[int, int]) -> tuple[int, ...]:
    """All positions in inclusive ranges, which is how simulators document their observations."""
    return tuple(i for first, last in ranges for i in range(first, last + 1))


_LONG = 200_000  # steps of the paper's tasks

# name: (Gymnasium id, kept positions, horizon, training steps, constructor arguments)
_GYMNASIUM: dict[str, tuple[str, tuple[int, ...], int, int, dict[str, Any]]] = {
    "HalfCheetah": ("HalfCheetah-v5", _span((0, 7)), 1000, _LONG, {}),
    "Hopper": ("Hopper-v5", _span((0, 4)), 1000, _LONG, {}),
    "Walker": ("Walker2d-v5", _span((0, 7)), 1000, _LONG, {}),
    "Ant": ("Ant-v5", _span((0, 12)), 1000, _LONG, {"include_cfrc_ext_in_observation": False}),
    # Humanoid's observation also holds body velocities (175-252); contact and actuator forces stay.
    "Humanoid": ("Humanoid-v5", _span((0, 21), (45, 174), (253, 347)), 1000, _LONG, {}),
    "Pendulum": ("Pendulum-v1", _span((0, 1)), 200, 20_000, {}),
    # Reward only at the goal, and a cost for every action: without exploration, standing still is best.
    "MountainCarContinuous": ("MountainCarContinuous-v0", (0,), 999, 50_000, {}),
}
_WITHOUT_MBBL = ("MountainCarContinuous",)

# dm_control "domain-task": entries of the observation that hold no velocity
_DM_CONTROL: dict[str, tuple[str, ...]] = {
    "cheetah-run": ("position",),
    "walker-run": ("orientations", "height"),
    "hopper-hop": ("position", "touch"),
    "humanoid-run": ("joint_angles", "head_height", "extremities", "torso_vertical"),
    "pendulum-swingup": ("orientation",),
    "cartpole-swingup_sparse": ("position",),
    "ball_in_cup-catch": ("position",),
}


def _all_tasks() -> list[Task]:
    tasks = []
    for name, (id_, positions, horizon, steps, kwargs) in _GYMNASIUM.items():
        for suffix, keep in (("P", positions), ("F", None)):
            start = 5000 if steps == _LONG else 1000
            native = Task(f"{name}-{suffix}", "gymnasium", id_, keep, horizon, steps, "native", kwargs)
            tasks.append(replace(native, learning_starts=start))
            if name in _WITHOUT_MBBL:
                continue
            # The MBBL variants bring their own terminations (see mbbl.py).
            free = {} if name in ("HalfCheetah", "Pendulum") else {"terminate_when_unhealthy": False}
            mbbl = f"{name}-{suffix}-mbbl"
            tasks.append(
                replace(native, name=mbbl, reward="mbbl", kwargs=kwargs | free, learning_starts=start)
            )
    strict = _span((0, 21))
    humanoid = Task("Humanoid-P-strict", "gymnasium", "Humanoid-v5", strict, 1000, _LONG)
    tasks.append(replace(humanoid, learning_starts=5000))
    for id_, names in _DM_CONTROL.items():
        tasks += [dm_control_task(f"{id_}-P", id_, names), dm_control_task(f"{id_}-F", id_, None)]
    return tasks


def dm_control_task(name: str, id_: str, keep: tuple[int, ...] | tuple[str, ...] | None) -> Task:
    """A task of dm_control's suite. Its steps are short, so each action is taken twice, as others do."""
    return Task(name, "dm_control", id_, keep, 1000, _LONG, action_repeat=2, learning_starts=5000)


TASKS = {task.name: task for task in _all_tasks()}


def gymnasium_id(task: Task) -> str:
    """The id under which a task is registered: `gym.make(gymnasium_id(task))`."""
    return f"mulv/{task.name.replace('/', '-')}-v0"
