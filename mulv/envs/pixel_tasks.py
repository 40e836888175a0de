"""The tasks whose observations are frames. Names are listed here, so that no simulator has to be imported.

As in the paper's table: 64×64×3, each action taken twice, episodes of 500 (Meta-world) and 1000 simulator
steps, one million and half a million of them in a run, cameras corner2 and 2.
"""

from mulv.envs.tasks import Task

# Domain: its tasks, as of dm_control 1.0.43.
_DM_CONTROL = {
    "acrobot": "swingup swingup_sparse",
    "ball_in_cup": "catch",
    "cartpole": "balance balance_sparse swingup swingup_sparse two_poles three_poles",
    "cheetah": "run",
    "dog": "stand walk trot run fetch",
    "finger": "spin turn_easy turn_hard",
    "fish": "upright swim",
    "hopper": "stand hop",
    "humanoid": "stand walk run run_pure_state",
    "humanoid_CMU": "stand walk run",
    "lqr": "lqr_2_1 lqr_6_2",
    "manipulator": "bring_ball bring_peg insert_ball insert_peg",
    "pendulum": "swingup",
    "point_mass": "easy hard",
    "quadruped": "walk run escape fetch",
    "reacher": "easy hard",
    "stacker": "stack_2 stack_4",
    "swimmer": "swimmer6 swimmer15",
    "walker": "stand walk run",
}
# The paper's tasks of dm_control's manipulation, which has a time limit of 250 steps.
_MANIPULATION, _MANIPULATION_STEPS = "manipulation-reach_duplo", 250
# The paper's camera 2 does not exist in most domains, and in three others it is inside the body's head.
_CAMERA = {"quadruped": 2}

# The 50 tasks of Meta-world's version 3, without their -v3.
_METAWORLD = """
    assembly basketball bin-picking box-close button-press button-press-topdown
    button-press-topdown-wall button-press-wall coffee-button coffee-pull coffee-push dial-turn
    disassemble door-close door-lock door-open door-unlock drawer-close drawer-open faucet-close
    faucet-open hammer hand-insert handle-press handle-press-side handle-pull handle-pull-side
    lever-pull peg-insert-side peg-unplug-side pick-out-of-hole pick-place pick-place-wall plate-slide
    plate-slide-back plate-slide-back-side plate-slide-side push push-back push-wall reach reach-wall
    shelf-place soccer stick-pull stick-push sweep sweep-into window-close window-open
"""


def _task(
    name: str, simulator: str, id_: str, horizon: int, env_steps: int, camera: str | int | None
) -> Task:
    return Task(
        f"{name}-px", simulator, id_, None, horizon, env_steps, pixels=True, camera=camera, action_repeat=2
    )


def _pixel_tasks() -> list[Task]:
    tasks = [_task("Pendulum", "gymnasium", "Pendulum-v1", 200, 20_000, camera=None)]
    for domain, names in _DM_CONTROL.items():
        camera = _CAMERA.get(domain, 0)
        for id_ in (f"{domain}-{name}" for name in names.split()):
            tasks.append(_task(id_, "dm_control", id_, 1000, 500_000, camera))
    tasks.append(
        _task(_MANIPULATION, "dm_control", _MANIPULATION, _MANIPULATION_STEPS, 500_000, camera="front_close")
    )
    for name in _METAWORLD.split():
        tasks.append(_task(f"metaworld/{name}", "metaworld", f"{name}-v3", 500, 1_000_000, "corner2"))
    return tasks


PIXEL_TASKS = {task.name: task for task in _pixel_tasks()}
