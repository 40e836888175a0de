"""What every algorithm is: a configuration, a state that is a pytree, and four pure functions.

init(key) → state
observe(state, memory, a_prev, o_h, key) → memory
act(state, memory, noise) → a_h
update(state, batch, key) → state, metrics
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Annotated, Any

import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from mulv.agents.encoder import ObservationEncoder
from mulv.core.errors import MulvError
from mulv.core.limits import POSITIVE, STEP, at_least, between
from mulv.core.memory import empty_window, push
from mulv.core.normalise import ObsMoments, RunningMoments
from mulv.core.options import Group
from mulv.core.spec import BatchSpec, EnvSpec, SequenceSpec
from mulv.core.types import Metrics, PyTree, Window
from mulv.nets.trunk import TrunkConfig

MOST_OCTAVES = 20  # parts of such noise last for half a million decisions


@dataclass(frozen=True)
class AgentConfig(Group):
    """Hyperparameters that every agent has."""

    gamma: Annotated[float, STEP] = 0.99
    """Discount per decision."""
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
    def example_rows(self) -> int:
        """Rows of the replay that the shortest example spans."""
        return 2

    @property
    def roll_in_length(self) -> int:
        """Uniform actions in a row where Algorithm 1 collects data."""
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
    """An algorithm applied to an environment's shapes. Hashable, so that equal agents share compiled code."""

    config: Any
    spec: EnvSpec

    @property
    @abstractmethod
    def batch_spec(self) -> BatchSpec | SequenceSpec:
        """What `update` wants cut from the replay."""

    @property
    def octaves(self) -> int:
        """Of the noise that explores."""
        return 1 if self.spec.discrete else self.config.pink_noise_octaves

    @property
    def encoder(self) -> ObservationEncoder | None:
        """What makes vectors of frames, where the agent learns from such vectors."""
        return None

    @abstractmethod
    def init(self, key: PRNGKeyArray) -> PyTree:
        """A fresh state: parameters, optimisers, statistics. Every leaf is an array."""

    @abstractmethod
    def init_memory(self) -> PyTree:
        """What the agent carries between steps, at the start of an episode: before anything was seen."""

    @abstractmethod
    def observe(
        self,
        state: PyTree,
        memory: Any,  # of the kind that init_memory gives
        a_prev: Float[Array, "act"],
        o_h: Float[Array, "obs"],
        key: PRNGKeyArray,
    ) -> Any:
        """The memory after a_{h-1} was taken and o_h seen; at an episode's first step the action is zero."""

    @abstractmethod
    def act(self, state: PyTree, memory: Any, noise: Float[Array, "act"] | None) -> Float[Array, "act"]:
        """The action that standard normal noise picks; without noise, the deterministic one."""

    @abstractmethod
    def update(self, state: PyTree, batch: Any, key: PRNGKeyArray) -> tuple[PyTree, Metrics]:
        """One gradient step on every trained part, from what `batch_spec` asks for; metrics are scalars."""

    def latent(self, state: PyTree, memory: Any, a_h: Float[Array, "act"]) -> Float[Array, "latent"] | None:
        """What the agent makes of its memory and an action, where that is one vector."""
        return None

    def q_values(self, state: PyTree, memory: Any, a_h: Float[Array, "act"]) -> Float[Array, "head"] | None:
        """Q(x_h, a_h) of each critic in the environment's own rewards; None where the agent has no critic."""
        return None

    def update_critic(
        self, state: PyTree, batch: Any, a_hn: Float[Array, "batch act"], key: PRNGKeyArray
    ) -> tuple[PyTree, Metrics] | None:
        """Policy evaluation: one update of all but the policy, without entropy; None without a critic.

        The policy that is evaluated may be anybody's: it takes a_{h+n} at the windows x_{h+n} of the batch.
        """
        return None

    def inspect(self, state: PyTree, batch: Any, key: PRNGKeyArray) -> Metrics:
        """Metrics too costly for every update; computed when a line is logged. Vectors become histograms."""
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
        o_h: Float[Array, "obs"],
        key: PRNGKeyArray,
    ) -> Window:
        return push(memory, a_prev, o_h)


def normalise_window(config: WindowConfig, moments: ObsMoments, x: Window) -> Window:
    """The window as networks see it."""
    if not config.normalise_observations:
        return x
    return moments.whiten_changes(x) if config.encode_changes else moments.whiten(x)


def reward_scale(config: AgentConfig, moments: RunningMoments) -> Float[Array, ""]:
    """What rewards are divided by: their running root mean square, or 1."""
    if not config.scale_rewards:
        return jnp.ones(())
    return jnp.sqrt(moments.second_moment + 1e-8)
