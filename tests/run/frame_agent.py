"""The smallest agent that learns from frames: it predicts rewards from the mean colours of a window."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp

from mulv.agents.base import AbstractAgent, AgentConfig
from mulv.core.spec import BatchSpec, EnvSpec
from mulv.core.window import WindowMemory


def colours(frames):
    """Mean colours of a window of frames, which must come as bytes."""
    if frames.dtype != jnp.uint8:
        raise TypeError(f"frames came as {frames.dtype}")
    return jnp.mean(frames.astype(jnp.float32), axis=(1, 2)).ravel() / 255


@dataclass(frozen=True)
class FrameAgent(AbstractAgent):
    """Acts by the same weights, which is of no use but to show that they were used."""

    config: AgentConfig
    spec: EnvSpec

    @property
    def batch_spec(self):
        c = self.config
        return BatchSpec(c.batch_size, c.window, c.n_step, 1, c.gamma)

    def init(self, key):
        return {"weights": 0.1 * jax.random.normal(key, (3 * self.config.window,))}

    def init_memory(self):
        return WindowMemory(self.spec, self.config.window)

    def act(self, state, memory, o_h, key, *, deterministic):
        memory = memory.push_obs(o_h)
        level = colours(memory.x_h.obs) @ state["weights"]
        a_h = jnp.tanh(level + (0.0 if deterministic else jax.random.normal(key, (self.spec.act_dim,))))
        a_h = jnp.broadcast_to(a_h, (self.spec.act_dim,))
        return a_h, memory.push_action(a_h)

    def update(self, state, batch, key):
        def loss(weights):
            predicted = jax.vmap(lambda obs: colours(obs) @ weights)(batch.x_h.obs)
            return jnp.mean((predicted - batch.reward) ** 2)

        value, gradient = jax.value_and_grad(loss)(state["weights"])
        return {"weights": state["weights"] - 0.01 * gradient}, {"train/loss": value}
