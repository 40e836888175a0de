"""The published pixel architecture, for its cost alone: DrQ-v2's encoder and planner with a frame decoder.

84×84, three frames stacked, random shifts of 4 pixels; four convolutions of 3, trained by the critic too; a
latent of mean and spread, from which the next frame (L1) and the discounted reward of three steps are
predicted; two critics with layers on a noisy latent, Huber loss, a moving average of them; a deterministic
actor with noise. Sizes are the paper's. Nothing here is meant to be trained to the end.
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, PRNGKeyArray, UInt8

from mulv.core.learner import Trained, descend, polyak, start_training
from mulv.nets.conv import Conv
from mulv.nets.trunk import Linear, Trunk, TrunkConfig

SIZE, STACK, PAD, CHANNELS, SMALL = 84, 9, 4, 32, 35
FEATURE, HIDDEN, ACTIONS, NOISE = 100, 1024, 4, 0.1
ADAM = optax.adam(1e-4)


class Data(NamedTuple):
    """A batch as its replay gives it."""

    obs: UInt8[Array, "batch 84 84 9"]
    next_obs: UInt8[Array, "batch 84 84 9"]
    action: Float[Array, "batch act"]
    reward: Float[Array, "batch"]


def random_data(batch: int) -> Data:
    """Frames of noise."""
    rng = np.random.default_rng(0)
    obs, later = (rng.integers(0, 256, (batch, SIZE, SIZE, STACK), np.uint8) for _ in range(2))
    return Data(obs, later, rng.uniform(-1, 1, (batch, ACTIONS)).astype("f4"), np.ones(batch, "f4"))


class Mlp(eqx.Module):
    """Two hidden layers and a head."""

    trunk: Trunk
    head: Linear

    def __init__(self, in_dim: int, out_dim: int, *, key: PRNGKeyArray):
        trunk_key, head_key = jax.random.split(key)
        self.trunk = Trunk(in_dim, TrunkConfig("mlp", HIDDEN, 2), key=trunk_key)
        self.head = Linear(HIDDEN, out_dim, key=head_key)

    def __call__(self, x: Float[Array, "in"]) -> Float[Array, "out"]:
        return self.head(self.trunk(x))


class Seeing(eqx.Module):
    """Encoder, latent, decoder of the next frame and of the reward, and the critics."""

    encoder: list[Conv]
    squeeze: Linear
    latent: Mlp
    spread: Linear
    decoder: list[Conv]
    reward: Mlp
    critics: list[Mlp]

    def __init__(self, key: PRNGKeyArray):
        keys = iter(jax.random.split(key, 16))
        plain = {"kernel": 3, "stride": 1}
        self.encoder = [Conv(STACK, CHANNELS, kernel=3, stride=2, padding=0, key=next(keys))] + [
            Conv(CHANNELS, CHANNELS, **plain, padding=0, key=next(keys)) for _ in range(3)
        ]
        self.squeeze = Linear(SMALL**2 * CHANNELS, FEATURE, key=next(keys))
        self.latent = Mlp(FEATURE + ACTIONS, 2 * FEATURE, key=next(keys))
        self.spread = Linear(FEATURE, SMALL**2 * CHANNELS, key=next(keys))
        self.decoder = [Conv(CHANNELS, CHANNELS, **plain, padding=2, key=next(keys)) for _ in range(3)] + [
            Conv(CHANNELS, 3, kernel=4, stride=2, padding=1, enlarges=True, key=next(keys))
        ]
        self.reward = Mlp(FEATURE, 1, key=next(keys))
        self.critics = [Mlp(FEATURE, 1, key=next(keys)) for _ in range(2)]

    def encode(self, frames: UInt8[Array, "84 84 9"]) -> Float[Array, "feature"]:
        x = frames.astype(jnp.float32) / 255 - 0.5
        for layer in self.encoder:
            x = jax.nn.relu(layer(x))
        return jnp.tanh(self.squeeze(x.ravel()))

    def z(self, u: Array, a: Array, noise: Array) -> tuple[Array, Array, Array]:
        mean, log_std = jnp.split(self.latent(jnp.concatenate([u, a])), 2)
        std = jnp.exp(jnp.clip(log_std, -5, 2))
        return mean, std, mean + NOISE * noise * std

    def values(self, z: Array) -> Float[Array, "head"]:
        return jnp.concatenate([critic(z) for critic in self.critics])

    def decode(self, z: Array) -> Float[Array, "84 84 3"]:
        x = jax.nn.relu(self.spread(z)).reshape(SMALL, SMALL, CHANNELS)
        for layer in self.decoder[:-1]:
            x = jax.nn.relu(layer(x))
        return self.decoder[-1](jnp.pad(x, ((0, 1), (0, 1), (0, 0))))


class State(NamedTuple):
    seeing: Trained
    actor: Trained
    target: Seeing


def init(key: PRNGKeyArray) -> State:
    seeing_key, actor_key = jax.random.split(key)
    seeing = Seeing(seeing_key)
    actor = Mlp(FEATURE, ACTIONS, key=actor_key)
    return State(start_training(ADAM, seeing), start_training(ADAM, actor), jax.tree.map(jnp.copy, seeing))


def shifted(frames: UInt8[Array, "84 84 9"], by: Array) -> UInt8[Array, "84 84 9"]:
    padded = jnp.pad(frames, ((PAD, PAD), (PAD, PAD), (0, 0)), mode="edge")
    return jax.lax.dynamic_slice(padded, (by[0], by[1], jnp.zeros_like(by[0])), frames.shape)


def update(state: State, data: Data, key: PRNGKeyArray) -> tuple[State, Array]:
    """A step of representation and critics, a step of the actor, a step of the moving average."""
    shift_key, noise_key, act_key = jax.random.split(key, 3)
    rows = data.reward.shape[0]
    obs, later = (
        jax.vmap(shifted)(frames, jax.random.randint(k, (rows, 2), 0, 2 * PAD + 1))
        for frames, k in zip((data.obs, data.next_obs), jax.random.split(shift_key), strict=True)
    )
    noise = jax.random.normal(noise_key, (3, rows, FEATURE))
    u_later = jax.vmap(state.seeing.params.encode)(later)
    a_later = jnp.tanh(jax.vmap(state.actor.params)(u_later))
    a_later = jnp.clip(a_later + NOISE * jax.random.normal(act_key, a_later.shape), -1, 1)
    z_later = jax.vmap(state.target.z)(u_later, a_later, noise[0])[2]
    y = data.reward + 0.97 * jnp.min(jax.vmap(state.target.values)(z_later), axis=-1)
    o_later = later[..., -3:].astype(jnp.float32) / 255 - 0.5

    def loss(m: Seeing) -> tuple[Array, Array]:
        u = jax.vmap(m.encode)(obs)
        mean, std, z = jax.vmap(m.z)(u, data.action, noise[1])
        drawn, reward = jax.vmap(m.decode)(mean + noise[2] * std), jax.vmap(m.reward)(mean)[:, 0]
        kl = jnp.mean(0.5 * (mean**2 + std**2 - 1) - jnp.log(std))
        values = jax.vmap(m.values)(z)
        critic = jnp.sum(jnp.mean(optax.huber_loss(values, jnp.stack([y, y], axis=-1)), axis=0))
        error = 10 * jnp.mean(jnp.abs(drawn - o_later)) + jnp.mean(jnp.square(reward - data.reward))
        return critic + error + kl, u

    gradient, u = eqx.filter_grad(loss, has_aux=True)(state.seeing.params)
    seeing, _ = descend(ADAM, state.seeing, gradient)

    def actor_loss(actor: Mlp) -> Array:
        z = jax.vmap(seeing.params.z)(u, jnp.tanh(jax.vmap(actor)(u)), noise[1])[2]
        return -jnp.mean(jnp.min(jax.vmap(seeing.params.values)(z), axis=-1))

    actor, norm = descend(ADAM, state.actor, eqx.filter_grad(actor_loss)(state.actor.params))
    return State(seeing, actor, polyak(state.target, seeing.params, 0.01)), norm
