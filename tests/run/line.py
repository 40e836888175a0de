"""A problem whose true values are known by hand, and a policy of it that needs its memory."""

from dataclasses import dataclass, field

import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np

from mulv.agents.base import AbstractWindowAgent, WindowConfig
from mulv.core.spec import BatchSpec, EnvSpec

SPEC, GAMMA, HORIZON = EnvSpec((1,), 1), 0.5, 10
EDGE = 0.8  # beyond it an episode terminates


class Line(gym.Env):
    """A point is moved by the action, and paid for where it then is."""

    observation_space = gym.spaces.Box(-np.inf, np.inf, (1,), np.float32)
    action_space = gym.spaces.Box(-1, 1, (1,), np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.x = float(self.np_random.uniform(-EDGE, EDGE))
        return np.float32([self.x]), {}

    def step(self, action):
        self.x += float(action[0])
        return np.float32([self.x]), self.x, abs(self.x) > EDGE, False, {}


def make():
    return gym.wrappers.TimeLimit(Line(), 20)


@dataclass(frozen=True)
class Back(AbstractWindowAgent):
    """a_h = −o_{h-1} / 2, and a critic that is right."""

    config: WindowConfig = field(default_factory=lambda: WindowConfig(window=2, gamma=GAMMA))
    spec: EnvSpec = SPEC

    @property
    def batch_spec(self):
        return BatchSpec(8, 2, 1, 1, GAMMA)

    def init(self, key):
        return jnp.zeros(1)

    def act(self, state, memory, noise):
        return jnp.clip(-memory.obs[0] / 2 + (0 if noise is None else 0.3 * noise), -1, 1)

    def update(self, state, batch, key):
        raise NotImplementedError

    def q_values(self, state, memory, a_h):
        def step(now, i):
            x, a, alive = now
            after = x + a[0]
            reward = jnp.where(alive, after, 0.0)
            return (after, jnp.clip(-x / 2, -1, 1)[None], alive & (jnp.abs(after) <= EDGE)), reward

        start = (memory.obs[1, 0], a_h, jnp.bool_(True))
        rewards = jax.lax.scan(step, start, jnp.arange(HORIZON))[1]
        return (rewards @ GAMMA ** jnp.arange(HORIZON))[None]


def return_by_hand(x, a):
    """Σ γ^i r_i from position x by action a; the policy's actions look one observation back."""
    total = 0.0
    for i in range(HORIZON):
        after = x + a
        total += GAMMA**i * after
        if abs(after) > EDGE:
            break
        x, a = after, float(np.clip(-x / 2, -1, 1))
    return total
