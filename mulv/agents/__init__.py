"""The algorithms by name, as used on the command line and in results."""

from collections.abc import Callable
from typing import Any, NamedTuple

from mulv.agents.base import AbstractAgent, AgentConfig
from mulv.agents.bc import BC, BCConfig
from mulv.agents.bc import PRESETS as BC_PRESETS
from mulv.agents.drqv2 import PRESETS as DRQV2_PRESETS
from mulv.agents.drqv2 import DrQV2, DrQV2Config
from mulv.agents.mulv.config import PRESETS as MULV_PRESETS
from mulv.agents.mulv.config import MuLVConfig
from mulv.agents.mulv.pixels import mulv_agent
from mulv.agents.sac import PRESETS as SAC_PRESETS
from mulv.agents.sac import SAC, SACConfig
from mulv.core.names import lookup
from mulv.core.options import with_options
from mulv.core.spec import EnvSpec

__all__ = ["ALGORITHMS", "SIZES", "AbstractAgent", "AgentConfig", "Algorithm", "algorithm", "preset", "sized"]


class Algorithm(NamedTuple):
    """The agent's constructor from (config, spec), the class of its configuration, and its named presets.

    With `copies_data` it imitates recorded actions, so it can only be trained on a dataset.
    """

    agent: Callable[[Any, EnvSpec], AbstractAgent]
    config: type[AgentConfig]
    presets: dict[str, Any]
    copies_data: bool = False


ALGORITHMS = {
    "mulv": Algorithm(mulv_agent, MuLVConfig, MULV_PRESETS),
    "sac": Algorithm(SAC, SACConfig, SAC_PRESETS),
    "drqv2": Algorithm(DrQV2, DrQV2Config, DRQV2_PRESETS),
    "bc": Algorithm(BC, BCConfig, BC_PRESETS, copies_data=True),
}


# Widths of networks, latents and features, relative to the preset's; `l` is for a GPU.
SIZES = {"s": 0.5, "m": 1.0, "l": 4.0}
_WIDTHS = ("trunk.width", "latent.dim", "critic.features")


def algorithm(name: str) -> Algorithm:
    """The algorithm with this name; an unknown name is an error that suggests the nearest one."""
    return lookup("algorithm", name, ALGORITHMS)


def preset(algo: str, name: str) -> AgentConfig:
    """The preset of an algorithm with this name."""
    return lookup(f"preset of {algo}", name, algorithm(algo).presets)


def sized(agent: AgentConfig, size: str) -> AgentConfig:
    """The configuration with all widths that it has multiplied by a size's factor."""
    factor = lookup("size", size, SIZES)
    widths = {}
    for name in _WIDTHS:
        group, field = name.split(".")
        if hasattr(agent, group) and hasattr(part := getattr(agent, group), field):
            widths[name] = max(1, int(factor * getattr(part, field)))
    return with_options(agent, widths)
