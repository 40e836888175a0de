"""The interface of agents: a configuration, a state that is a pytree, and four pure functions.

init(key) → state
observe(state, memory, a_prev, r_prev, o_h, key) → memory
act(state, memory, noise) → a_h
update(state, batch, key) → state, metrics
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Self

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from mulv.agents.encoder import ObservationEncoder
from mulv.core.errors import MulvError
from mulv.core.limits import NOT_NEGATIVE, POSITIVE, STEP, at_least, between
from mulv.core.memory import empty_window, push
from mulv.core.normalise import ObsMoments, RunningMoments
from mulv.core.options import Group
from mulv.core.spec import BatchSpec, EnvSpec, SequenceSpec
from mulv.core.types import Metrics, PyTree, Window
from mulv.nets.trunk import TrunkConfig

GAMMA_PER_STEP = 0.995  # where the discount is left to the task
MOST_OCTAVES = 20  # the slowest component then changes every half a million decisions


@dataclass(frozen=True)
class AgentConfig(Group):
    """Hyperparameters that every agent has."""

    gamma: Annotated[float | None, STEP] = 0.99
    """Discount per decision. None: 0.995 for each step of the simulator that it lasts."""
    batch_size: Annotated[int, at_least(1)] = 256
    """Examples in an update: windows, or sequences."""
    learning_rate: Annotated[float, POSITIVE] = 3e-4
    """Adam's step size, for every network."""
    trunk: TrunkConfig = field(default_factory=TrunkConfig)
    """The body of actor and critic."""
    normalise_observations: bool = True
    """Whiten observations by running statistics."""
    scale_rewards: bool = False
    """Divide rewards by their running root mean square."""
    pink_noise_octaves: Annotated[int, between(1, MOST_OCTAVES)] = 1
    """Time scales of the exploration noise; 1 is white noise."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.trunk.width < 1 or self.trunk.depth < 1:
            raise MulvError(f"trunk is {self.trunk.depth} x {self.trunk.width}; both must be at least 1")

    @property
    def discount(self) -> float:
        """The discount per decision, of one step if nothing else is known."""
        return GAMMA_PER_STEP if self.gamma is None else self.gamma

    def with_discount(self, repeat: int) -> Self:
        """The configuration with the discount of decisions that last so many steps of the simulator."""
        return self if self.gamma is not None else replace(self, gamma=GAMMA_PER_STEP**repeat)

    @property
    def example_rows(self) -> int:
        """Rows of the replay that one training example needs at least."""
        return 2

    @property
    def roll_in_length(self) -> int:
        """Consecutive uniform actions per episode in Algorithm 1's data collection."""
        return 1


@dataclass(frozen=True)
class WindowConfig(AgentConfig):
    """Hyperparameters of agents that learn from windows."""

    window: Annotated[int, at_least(1)] = 4
    """L: observations in the window x_h."""
    n_step: Annotated[int, at_least(1)] = 1
    """Rewards summed before the critic bootstraps."""
    encode_changes: bool = False
    """Show networks the changes between observations, at their scale."""
    fading: Annotated[float, NOT_NEGATIVE] = 0.0
    """p: show networks what lies k steps back scaled by k^-p."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.encode_changes and not self.normalise_observations:
            raise MulvError(
                "encode_changes needs the scales of normalise_observations; leave that on, or both off"
            )

    @property
    def example_rows(self) -> int:
        return self.window + self.n_step + 1

    @property
    def roll_in_length(self) -> int:
        return self.window


@dataclass(frozen=True)
class AbstractAgent(ABC):
    """An algorithm for an environment's shapes, without state. Hashable: equal agents share compiled code."""

    config: Any
    spec: EnvSpec

    @property
    @abstractmethod
    def batch_spec(self) -> BatchSpec | SequenceSpec:
        """The kind and shape of the batches that `update` takes."""

    @property
    def octaves(self) -> int:
        """The number of octaves of the exploration noise; see `pink_noise`."""
        return 1 if self.spec.discrete else self.config.pink_noise_octaves

    @property
    def encoder(self) -> ObservationEncoder | None:
        """The encoder from frames to vectors, if the agent learns from such vectors."""
        return None

    @abstractmethod
    def init(self, key: PRNGKeyArray) -> PyTree:
        """The initial state: parameters, optimiser states, running statistics. Every leaf is an array."""

    @abstractmethod
    def init_memory(self) -> PyTree:
        """The agent's memory at the start of an episode, before the first observation."""

    @abstractmethod
    def observe(
        self,
        state: PyTree,
        memory: Any,  # of the same structure as init_memory returns
        a_prev: Float[Array, "act"],
        r_prev: Float[Array, ""],
        o_h: Float[Array, "obs"],
        key: PRNGKeyArray,
    ) -> Any:
        """The memory after action a_{h-1}, reward r_{h-1} and observation o_h.

        At an episode's first step a_{h-1} and r_{h-1} are zero. Where nobody gives rewards (`predict`),
        r_{h-1} is always zero, so what `act` returns must not depend on it.
        """

    @abstractmethod
    def act(self, state: PyTree, memory: Any, noise: Float[Array, "act"] | None) -> Float[Array, "act"]:
        """The action, as a function of standard normal `noise`; without noise, the deterministic action."""

    @abstractmethod
    def update(self, state: PyTree, batch: Any, key: PRNGKeyArray) -> tuple[PyTree, Metrics]:
        """The state after one gradient step on every trained part, and scalar metrics.

        `batch` is as `batch_spec` says.
        """

    def latent(self, state: PyTree, memory: Any, a_h: Float[Array, "act"]) -> Float[Array, "latent"] | None:
        """The agent's latent of its memory and an action, as one vector; None if it has no latent."""
        return None

    def q_values(self, state: PyTree, memory: Any, a_h: Float[Array, "act"]) -> Float[Array, "head"] | None:
        """Q(x_h, a_h) of each critic, in units of the environment's rewards; None without a critic."""
        return None

    def update_critic(
        self, state: PyTree, batch: Any, a_hn: Float[Array, "batch act"], key: PRNGKeyArray
    ) -> tuple[PyTree, Metrics] | None:
        """Policy evaluation: one update of all but the policy, without entropy; None without a critic.

        `a_hn` are the evaluated policy's actions at the windows x_{h+n} of the batch; it may be any policy.
        """
        return None

    def inspect(self, state: PyTree, batch: Any, key: PRNGKeyArray) -> Metrics:
        """Metrics that are too costly for every update, computed for each logged line; vectors become
        histograms.
        """
        return {}


@dataclass(frozen=True)
class AbstractWindowAgent(AbstractAgent):
    """An agent whose memory is the window x_h."""

    def init_memory(self) -> Window:
        return empty_window(self.spec, self.config.window)

    def observe(
        self,
        state: PyTree,
        memory: Window,
        a_prev: Float[Array, "act"],
        r_prev: Float[Array, ""],
        o_h: Float[Array, "obs"],
        key: PRNGKeyArray,
    ) -> Window:
        return push(memory, a_prev, r_prev, o_h)


def normalise_window(config: WindowConfig, moments: ObsMoments, x: Window) -> Window:
    """The window as input of networks: whitened, if the configuration says so."""
    if config.normalise_observations:
        x = moments.whiten_changes(x) if config.encode_changes else moments.whiten(x)
    return x._replace(obs=_faded(config, x.obs), actions=_faded(config, x.actions))


def _faded(
    config: WindowConfig, entries: Float[Array, "*batch times entry"]
) -> Float[Array, "*batch times entry"]:
    """What lies k steps back scaled by k^-p; actions lie at least one step back."""
    if config.fading == 0:
        return entries
    back = np.maximum(np.arange(config.window - 1, -1, -1), 1)[: entries.shape[-2], None]
    return entries * jnp.broadcast_to(jnp.float32(back**-config.fading), entries.shape)


def past_rewards(config: WindowConfig, moments: RunningMoments, x: Window) -> Float[Array, "*batch window"]:
    """The rewards that came with a window's observations, at unit scale."""
    return _faded(config, moments.scale(x.rewards)[..., None])[..., 0]


def reward_scale(config: AgentConfig, moments: RunningMoments) -> Float[Array, ""]:
    """The divisor of rewards: their running root mean square, or 1."""
    if not config.scale_rewards:
        return jnp.ones(())
    return jnp.sqrt(moments.second_moment + 1e-8)
