"""Finite POMDPs by name: `make("tiger")`, `make("rocksample-7-8")`, `make("lock", H=20, L=3)`."""

import functools
import inspect
import re
from collections.abc import Callable

from mulv.core.errors import MulvError
from mulv.core.names import lookup
from mulv.tabular.pomdp import POMDP
from mulv.tabular.zoo.generated import random_decodable, t_maze
from mulv.tabular.zoo.hallway import hallway, hallway2
from mulv.tabular.zoo.light_dark import light_dark
from mulv.tabular.zoo.lock import lock
from mulv.tabular.zoo.rocksample import rocksample
from mulv.tabular.zoo.tag import tag
from mulv.tabular.zoo.tiger import tiger

ZOO: dict[str, Callable[..., POMDP]] = {
    "tiger": tiger,
    "hallway": hallway,
    "hallway2": hallway2,
    "tag": tag,
    "rocksample-4-4": functools.partial(rocksample, 4, 4),
    "rocksample-7-8": functools.partial(rocksample, 7, 8),
    "light-dark": light_dark,
    "lock": lock,
    "block-lock": functools.partial(lock, L=1, emissions=4),
    "random-decodable": random_decodable,
    "t-maze": t_maze,
}


def make(name: str, **parameters: float) -> POMDP:
    """The POMDP called `name`; a typo gets the nearest name. RockSample goes by any `rocksample-n-k`."""
    size = re.fullmatch(r"rocksample-([0-9]{1,3})-([0-9]{1,3})", name)
    maker = functools.partial(rocksample, *map(int, size.groups())) if size else lookup("POMDP", name, ZOO)
    known = [p.name for p in inspect.signature(maker).parameters.values() if p.kind is not p.VAR_KEYWORD]
    for parameter in parameters:
        if parameter not in known:
            raise MulvError(f"{name} has no parameter {parameter!r}; it has: {', '.join(known) or 'none'}")
    return maker(**parameters)
