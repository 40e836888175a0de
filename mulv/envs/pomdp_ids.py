"""Gymnasium ids of the POMDPs in `mulv/tabular/zoo`, which is imported only when one is made."""

from typing import Any, NamedTuple

import gymnasium as gym


class Id(NamedTuple):
    """The id `mulv/<id>-v0`, and the step at which an episode is truncated (None: it ends by itself)."""

    id: str
    max_steps: int | None


IDS = {
    "tiger": Id("Tiger", 100),
    "hallway": Id("Hallway", 251),
    "hallway2": Id("Hallway2", 251),
    "tag": Id("Tag", 100),
    "rocksample-4-4": Id("RockSample-4-4", 100),
    "rocksample-7-8": Id("RockSample-7-8", 100),
    "light-dark": Id("LightDark", 100),
    "lock": Id("Lock", None),
    "block-lock": Id("BlockLock", None),
    "random-decodable": Id("RandomDecodable", None),
    "t-maze": Id("TMaze", None),
}
# Longer locks have their own names, so that suites can use them: Lock-<decisions>-<actions>.
LOCKS = {f"Lock-{H}-{actions}": {"H": H, "actions": actions} for H in (10, 20, 50) for actions in (4, 10)}


def register() -> None:
    """Make every POMDP of the zoo a Gymnasium id, such as `mulv/RockSample-7-8-v0`."""
    for name, (id_, max_steps) in IDS.items():
        _register(id_, max_steps, name=name)
    for id_, parameters in LOCKS.items():
        _register(id_, None, name="lock", **parameters)


def _register(id_: str, max_steps: int | None, **kwargs: Any) -> None:
    if f"mulv/{id_}-v0" not in gym.registry:
        gym.register(
            f"mulv/{id_}-v0",
            entry_point="mulv.envs.pomdp_env:make_named",
            kwargs=kwargs,
            max_episode_steps=max_steps,
        )
