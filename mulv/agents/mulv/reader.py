"""How windows become vectors, and an actor that reads windows by itself."""

import equinox as eqx
import jax
from jaxtyping import PRNGKeyArray

from mulv.agents.mulv.config import MuLVConfig
from mulv.core.gaussian import TanhNormal
from mulv.core.spec import EnvSpec
from mulv.core.types import Window
from mulv.nets.policy import Actor
from mulv.nets.trunk import flat_window_dim, flatten_window
from mulv.nets.window import WindowGRU


def window_reader(
    spec: EnvSpec, config: MuLVConfig, rewards: int, *, key: PRNGKeyArray
) -> tuple[WindowGRU | None, int]:
    """The GRU that reads windows, if there is one, and the length of the vector that a window becomes."""
    if (options := config.recurrence) is None:
        return None, flat_window_dim(spec.obs_dim + rewards, spec.act_dim, config.window)
    shape = (2 * spec.obs_dim + rewards, spec.act_dim, options.units, options.direct)  # levels and changes
    return WindowGRU(*shape, key=key), WindowGRU.out_dim(*shape)


class WindowActor(eqx.Module):
    """π(a | x_h) by a network of its own, for a critic that sees what the policy must not."""

    recurrence: WindowGRU | None
    actor: Actor

    def __init__(self, spec: EnvSpec, config: MuLVConfig, *, key: PRNGKeyArray):
        reader_key, actor_key = jax.random.split(key)
        self.recurrence, in_dim = window_reader(spec, config, rewards=0, key=reader_key)
        self.actor = Actor(in_dim, spec.act_dim, config.trunk, key=actor_key)

    def __call__(self, x_h: Window) -> TanhNormal:
        return self.actor((self.recurrence or flatten_window)(x_h))
