"""DrQ-v2: DDPG on shifted frames, the model-free baseline on pixels.

Yarats et al. 2021: clipped double Q, n-step returns, random shifts, decaying noise; only the critic's loss
trains the encoder. See docs/algorithms/drqv2.md.
"""

from dataclasses import dataclass, field
from typing import Annotated, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, PRNGKeyArray

from mulv.agents.action_noise import ActionNoise, clipped_noise, noise_std, perturb
from mulv.agents.base import AbstractWindowAgent, WindowConfig, reward_scale
from mulv.core.errors import MulvError
from mulv.core.learner import Trained, descend, polyak, start_training
from mulv.core.limits import NOT_NEGATIVE, POSITIVE, STEP, at_least, between
from mulv.core.normalise import RunningMoments
from mulv.core.spec import BatchSpec, EnvSpec
from mulv.core.types import Batch, Metrics, Window
from mulv.nets.augment import random_shift
from mulv.nets.bottleneck import DeterministicActor, DoubleQ
from mulv.nets.stack import LAYERS, StackEncoder, encoding_dim, stack_frames
from mulv.nets.trunk import TrunkConfig

Encodings = Float[Array, "batch encoding"]
Actions = Float[Array, "batch act"]


@dataclass(frozen=True)
class DrQV2Config(WindowConfig):
    """Hyperparameters of DrQ-v2."""

    window: Annotated[int, at_least(1)] = 3
    """L: frames that are stacked."""
    n_step: Annotated[int, at_least(1)] = 3
    """Rewards summed before the critic bootstraps."""
    batch_size: Annotated[int, at_least(1)] = 64
    """Windows in an update."""
    learning_rate: Annotated[float, POSITIVE] = 1e-4
    """Adam's step size, for every network."""
    trunk: TrunkConfig = field(default_factory=lambda: TrunkConfig("mlp", 256, 2))
    """Hidden layers of actor and critics, behind the bottleneck."""
    normalise_observations: bool = False
    """Stays off: frames are shown as x/255 − 0.5."""
    tau: Annotated[float, STEP] = 0.01
    """Step of the target critics towards the critics, per update."""
    noise: ActionNoise = field(default_factory=ActionNoise)
    """Exploration noise, and the noise within updates."""
    feature_dim: Annotated[int, at_least(1)] = 50
    """Numbers that the bottleneck (linear, LayerNorm, tanh) leaves of an encoding."""
    channels: Annotated[int, at_least(1)] = 32
    """Of each convolution."""
    halvings: Annotated[int, between(0, LAYERS)] = 3
    """How many of the four convolutions halve the size; published: the first alone."""
    pad: Annotated[int, NOT_NEGATIVE] = 4
    """Pixels by which frames are shifted at most, in updates; 0 is not at all."""

    def __post_init__(self) -> None:
        if self.normalise_observations or self.encode_changes:
            raise MulvError("normalise_observations and encode_changes are for vectors; leave them off here")
        super().__post_init__()


PRESETS = {
    "default": DrQV2Config(),
    "paper": DrQV2Config(
        batch_size=256, trunk=TrunkConfig("mlp", 1024, 2), halvings=1, noise=ActionNoise(steps=500_000)
    ),
}


def actor_loss(actor: DeterministicActor, critic: DoubleQ, e_h: Encodings, noise: Actions) -> Array:
    """−E[min_j Q_j(e_h, μ(e_h) + noise)]."""
    return -jnp.mean(jnp.min(critic(e_h, perturb(jax.vmap(actor)(e_h), noise)), axis=0))


class DrQV2State(NamedTuple):
    """Everything DrQ-v2 learns, and the size of the replay, on which σ depends."""

    encoder: Trained
    critic: Trained
    actor: Trained
    target_critic: DoubleQ
    reward_moments: RunningMoments
    data_size: Float[Array, ""]  # rows of the replay at the last update; sets σ of the exploration noise


@dataclass(frozen=True)
class DrQV2(AbstractWindowAgent):
    """DDPG on stacked, shifted frames."""

    config: DrQV2Config
    spec: EnvSpec

    def __post_init__(self) -> None:
        self.spec.require_frames("DrQ-v2")
        if self.spec.discrete:
            raise MulvError(
                "DrQ-v2 needs continuous actions, and this task's are discrete; choose another --algo"
            )
        # Raises an error if frames are too small.
        encoding_dim(self.spec.obs_shape, self.config.channels, self.config.halvings)

    @property
    def batch_spec(self) -> BatchSpec:
        c = self.config
        return BatchSpec(c.batch_size, c.window, c.n_step, future=1, gamma=c.discount)

    @property
    def optimiser(self) -> optax.GradientTransformation:
        return optax.adam(self.config.learning_rate)

    def init(self, key: PRNGKeyArray) -> DrQV2State:
        c, spec = self.config, self.spec
        encoder_key, critic_key, actor_key = jax.random.split(key, 3)
        in_dim = encoding_dim(spec.obs_shape, c.channels, c.halvings)
        encoder = StackEncoder(c.window * spec.obs_shape[-1], c.channels, c.halvings, key=encoder_key)
        critic = DoubleQ(in_dim, c.feature_dim, spec.act_dim, c.trunk, key=critic_key)
        actor = DeterministicActor(in_dim, c.feature_dim, spec.act_dim, c.trunk, key=actor_key)
        return DrQV2State(
            encoder=start_training(self.optimiser, encoder),
            critic=start_training(self.optimiser, critic),
            actor=start_training(self.optimiser, actor),
            target_critic=jax.tree.map(jnp.copy, critic),
            reward_moments=RunningMoments(()),
            data_size=jnp.zeros(()),
        )

    def act(
        self, state: DrQV2State, memory: Window, noise: Float[Array, "act"] | None
    ) -> Float[Array, "act"]:
        mean = state.actor.params(state.encoder.params.without_gradient(stack_frames(memory)))
        return mean if noise is None else perturb(mean, noise_std(self.config.noise, state.data_size) * noise)

    def update(self, state: DrQV2State, batch: Batch, key: PRNGKeyArray) -> tuple[DrQV2State, Metrics]:
        """One step of critic and encoder towards the n-step target, then of the actor and the target critic.

        Each window is encoded once: the actor is trained on the encodings of the critic's step.
        """
        c, optimiser = self.config, self.optimiser
        shift_key, next_shift_key, target_key, actor_key = jax.random.split(key, 4)
        data_size = batch.data_size[0]
        std = noise_std(c.noise, data_size)
        target_noise, actor_noise = (
            clipped_noise(c.noise, std, batch.a_h.shape, k) for k in (target_key, actor_key)
        )
        reward_moments = state.reward_moments.update(batch.future.rewards[:, 0])
        rewards = batch.reward / reward_scale(c, reward_moments)
        x_h, x_hn = (
            random_shift(jax.vmap(stack_frames)(x), k, pad=c.pad)
            for x, k in ((batch.x_h, shift_key), (batch.x_hn, next_shift_key))
        )

        e_hn = jax.vmap(state.encoder.params.without_gradient)(x_hn)
        a_hn = perturb(jax.vmap(state.actor.params)(e_hn), target_noise)
        targets = rewards + batch.discount * jnp.min(state.target_critic(e_hn, a_hn), axis=0)

        def critic_loss(networks: tuple[StackEncoder, DoubleQ]) -> tuple[Array, tuple[Array, Encodings]]:
            encoder, critic = networks
            e_h = jax.vmap(encoder)(x_h)
            values = critic(e_h, batch.a_h)
            return jnp.sum(jnp.mean(jnp.square(values - targets[None]), axis=1)), (jnp.mean(values), e_h)

        (critic_loss_value, (q_mean, e_h)), gradients = eqx.filter_value_and_grad(critic_loss, has_aux=True)(
            (state.encoder.params, state.critic.params)
        )
        encoder, encoder_grad_norm = descend(optimiser, state.encoder, gradients[0])
        critic, critic_grad_norm = descend(optimiser, state.critic, gradients[1])

        actor_loss_value, gradient = eqx.filter_value_and_grad(actor_loss)(
            state.actor.params, critic.params, e_h, actor_noise
        )
        actor, actor_grad_norm = descend(optimiser, state.actor, gradient)

        target_critic = polyak(state.target_critic, critic.params, c.tau)
        return DrQV2State(encoder, critic, actor, target_critic, reward_moments, data_size), {
            "train/critic_loss": critic_loss_value,
            "train/actor_loss": actor_loss_value,
            "train/q_mean": q_mean,
            "train/target_mean": jnp.mean(targets),
            "train/noise_std": std,
            "train/encoder_grad_norm": encoder_grad_norm,
            "train/critic_grad_norm": critic_grad_norm,
            "train/actor_grad_norm": actor_grad_norm,
        }
