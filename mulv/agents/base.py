"""What every algorithm is: a configuration, a state that is a pytree, and three pure functions."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray, UInt8

from mulv.core.errors import MulvError
from mulv.core.normalise import ObsMoments, RunningMoments
from mulv.core.spec import BatchSpec, EnvSpec
from mulv.core.types import Batch, Metrics, PyTree, Window
from mulv.core.window import AbstractMemory, WindowMemory
from mulv.nets.trunk import TrunkConfig

MOST_OCTAVES = 20  # parts of such noise last for half a million decisions


@dataclass(frozen=True)
class AgentConfig:
    """Hyperparameters that every agent has."""

    window: int = 4
    """L: observations in the window x_h."""
    n_step: int = 1
    """Rewards summed before the critic bootstraps."""
    gamma: float = 0.99
    """Discount per decision."""
    batch_size: int = 256
    """Windows in an update."""
    learning_rate: float = 3e-4
    """Adam's step size, for every network."""
    trunk: TrunkConfig = field(default_factory=TrunkConfig)
    """The body of actor and critic."""
    normalise_observations: bool = True
    """Whiten observations by running statistics."""
    encode_changes: bool = False
    """Show networks the newest observation and the changes that led to it, each at its own scale."""
    scale_rewards: bool = False
    """Divide rewards by their running root mean square."""
    noise_octaves: int = 1
    """Of the noise that continuous actions explore by: 1 is white; with n, parts of it last for 2^(n-1)
    decisions, which a body of some mass feels better."""

    def __post_init__(self) -> None:
        for name in ("window", "n_step", "batch_size", "noise_octaves"):
            if getattr(self, name) < 1:
                raise MulvError(f"{name} is {getattr(self, name)}; it must be at least 1")
        if self.noise_octaves > MOST_OCTAVES:
            raise MulvError(f"noise_octaves is {self.noise_octaves}; it must be at most {MOST_OCTAVES}")
        if not 0 < self.gamma <= 1:
            raise MulvError(f"gamma is {self.gamma}; it must lie in (0, 1]")
        if not self.learning_rate > 0:
            raise MulvError(f"learning_rate is {self.learning_rate}; it must be positive")
        if self.trunk.width < 1 or self.trunk.depth < 1:
            raise MulvError(f"trunk is {self.trunk.depth} x {self.trunk.width}; both must be at least 1")


@dataclass(frozen=True)
class AbstractAgent(ABC):
    """An algorithm applied to an environment's shapes. Hashable, so that equal agents share compiled code."""

    config: Any
    spec: EnvSpec

    @property
    @abstractmethod
    def batch_spec(self) -> BatchSpec:
        """What `update` wants cut from the replay."""

    @property
    def octaves(self) -> int:
        """Of the noise that explores."""
        return 1 if self.spec.discrete else self.config.noise_octaves

    @property
    def pretraining(self) -> int:
        """Updates that are due at once when learning starts, on what there is by then."""
        return 0

    @abstractmethod
    def init(self, key: PRNGKeyArray) -> PyTree:
        """A fresh state: parameters, optimisers, statistics. Every leaf is an array."""

    @abstractmethod
    def init_memory(self) -> AbstractMemory:
        """What the agent carries between steps of one episode."""

    @abstractmethod
    def act(
        self,
        state: PyTree,
        memory: Any,  # of the kind that init_memory gives
        o_h: Float[Array, "obs"],
        noise: Float[Array, "act"] | None,
    ) -> tuple[Float[Array, "act"], Any]:
        """The action at o_h that standard normal noise picks, or the best, and the memory after it."""

    @abstractmethod
    def update(self, state: PyTree, batch: Batch, key: PRNGKeyArray) -> tuple[PyTree, Metrics]:
        """One gradient step on every trained part; metrics are scalars."""

    def latent(self, state: PyTree, memory: Any) -> Float[Array, "latent"] | None:
        """What the agent makes of its window and the action just taken, where that is one vector."""
        return None

    @property
    def embedding_dim(self) -> int:
        """Length of the vectors that stand for observations in batches; 0 where observations do."""
        return 0

    @property
    def refreshed_per_update(self) -> int:
        """Of these vectors, how many are made anew per update, on average."""
        return 0

    def embed(self, state: PyTree, o_h: Array) -> Float[Array, "obs"] | None:
        """The vector that stands for an observation, where one does."""
        return None

    def pictures(self, state: PyTree, batch: Batch) -> UInt8[Array, "batch picture 64 64 3"] | None:
        """What was seen and what the agent makes of it, side by side, where it sees frames."""
        return None

    def inspect(self, state: PyTree, batch: Batch, key: PRNGKeyArray) -> Metrics:
        """Metrics too costly for every update; computed when a line is logged. Vectors become histograms."""
        return {}


@dataclass(frozen=True)
class AbstractWindowAgent(AbstractAgent):
    """An agent that carries the window x_h from step to step, and chooses an action by that alone."""

    @abstractmethod
    def choose(self, state: Any, x_h: Window, noise: Float[Array, "act"] | None) -> Float[Array, "act"]:
        """The action at a window; without noise, the best."""

    def init_memory(self) -> WindowMemory:
        return WindowMemory(self.spec, self.config.window)

    def act(
        self,
        state: PyTree,
        memory: WindowMemory,
        o_h: Float[Array, "obs"],
        noise: Float[Array, "act"] | None,
    ) -> tuple[Float[Array, "act"], WindowMemory]:
        memory = memory.push_obs(o_h)
        a_h = self.choose(state, memory.x_h, noise)
        return a_h, memory.push_action(a_h)


def as_seen(config: AgentConfig, moments: ObsMoments, x: Window) -> Window:
    """The window as networks see it."""
    if not config.normalise_observations:
        return x
    return moments.whiten_changes(x) if config.encode_changes else moments.whiten(x)


def reward_scale(config: AgentConfig, moments: RunningMoments) -> Float[Array, ""]:
    """What rewards are divided by: their running root mean square, or 1."""
    if not config.scale_rewards:
        return jnp.ones(())
    return jnp.sqrt(moments.second_moment + 1e-8)
