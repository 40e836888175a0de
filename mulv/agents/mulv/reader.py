"""How windows become vectors."""

from jaxtyping import PRNGKeyArray

from mulv.agents.mulv.config import MuLVConfig
from mulv.core.spec import EnvSpec
from mulv.nets.trunk import flat_window_dim
from mulv.nets.window import WindowGRU


def seen_window_dim(spec: EnvSpec, config: MuLVConfig) -> int:
    """The length of `flatten_window` of a window as networks see it: a GRU is shown levels and changes."""
    return flat_window_dim((1 + bool(config.recurrence)) * spec.obs_dim, spec.act_dim, config.window)


def window_reader(spec: EnvSpec, config: MuLVConfig, *, key: PRNGKeyArray) -> tuple[WindowGRU | None, int]:
    """The GRU that reads windows, if there is one, and the length of the vector that a window becomes."""
    if (options := config.recurrence) is None:
        return None, seen_window_dim(spec, config)
    shape = (2 * spec.obs_dim, spec.act_dim, options.units, options.direct)  # levels and changes
    return WindowGRU(*shape, key=key), WindowGRU.out_dim(*shape)
