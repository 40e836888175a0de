"""The tasks as a table."""

from collections.abc import Iterator

from mulv.envs.make import env_spec, make_env
from mulv.envs.tasks import TASKS, gymnasium_id


def list_tasks() -> Iterator[str]:
    """A line a task: what an agent sees, what it does, for how long."""
    row = "{:20}{:>12}{:>9}{:>9}  {:29}{}"
    yield row.format("task", "observation", "actions", "horizon", "Gymnasium id", "kept of the observation")
    for task in TASKS.values():
        env = make_env(task.name)
        spec = env_spec(env)
        env.close()
        kept = "all" if task.keep is None else _kept(task.keep)
        sizes = (spec.obs_dim, spec.act_dim, task.horizon)
        yield row.format(task.name, *sizes, gymnasium_id(task), f"{kept} of {task.id}")


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
