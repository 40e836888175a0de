"""The tasks as a table of text."""

from mulv.envs.make import env_spec, make_env
from mulv.envs.pixel_tasks import PIXEL_TASKS
from mulv.envs.tasks import TASKS, gymnasium_id

_ROW = "{:25}{:>12}{:>9}{:>9}  {:34}{}"


def vector_table() -> list[str]:
    """A line per task with vector observations: observation, actions, horizon."""
    lines = [
        _ROW.format("task", "observation", "actions", "horizon", "Gymnasium id", "kept of the observation")
    ]
    for task in TASKS.values():
        env = make_env(task.name)
        spec = env_spec(env)
        env.close()
        kept = "all" if task.keep is None else _kept(task.keep)
        sizes = (spec.obs_dim, spec.act_dim, task.horizon)
        lines.append(_ROW.format(task.name, *sizes, gymnasium_id(task), f"{kept} of {task.id}"))
    return lines


def pixel_paragraphs() -> list[str]:
    """The tasks with frames as observations, one line per family."""
    families: dict[str, list[str]] = {}
    for task in PIXEL_TASKS.values():
        how = "drawn without GL" if task.camera is None else f"camera {task.camera}"
        families.setdefault(f"{task.simulator}, {task.horizon} steps, {how}", []).append(task.name)
    return [f"{family}: {', '.join(names)}" for family, names in families.items()]


def _kept(keep: tuple[int, ...] | tuple[str, ...]) -> str:
    """Positions as ranges, names as they are."""
    if isinstance(keep[0], str):
        return "+".join(str(name) for name in keep)
    spans: list[list[int]] = []
    for position in map(int, keep):
        if spans and spans[-1][1] == position - 1:
            spans[-1][1] = position
        else:
            spans.append([position, position])
    return ",".join(f"{a}-{b}" if a != b else str(a) for a, b in spans)
