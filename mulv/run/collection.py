"""Collecting experience: actions of the policy, or random ones, in all environments at once."""

from collections import deque

import jax
import jax.numpy as jnp
import numpy as np

from mulv.agents.base import AbstractAgent
from mulv.data import Replay
from mulv.envs import VectorEnv
from mulv.run import compiled
from mulv.run.config import RunConfig
from mulv.run.counters import Counters
from mulv.run.roll_in import RollIn


class Collector:
    """Steps a run's environments and writes the rows to the replay; keeps the agent's memory of each one."""

    def __init__(
        self,
        config: RunConfig,
        agent: AbstractAgent,
        envs: VectorEnv,
        replay: Replay,
        counters: Counters,
        key: jax.Array,
        rng: np.random.Generator,
    ):
        self.envs, self.replay, self._counters = envs, replay, counters
        self._config, self._agent, self._key, self._rng = config, agent, key, rng
        self._carry = compiled.init_carry(agent, envs.num_envs)
        self._roll_in = RollIn(envs.num_envs, config.agent.roll_in_length, rng)
        self.recent: deque[tuple[float, int]] = deque(maxlen=100)  # return, length of finished episodes

    def choose(self, state: compiled.Packed, *, at_random: bool) -> np.ndarray:
        """An action for every environment; also updates the agent's memories with the newest observations."""
        envs = self.envs
        if not envs.episodes_begun.any():
            self.replay.append(envs.start())
        step = np.int32(self._counters.agent_steps // envs.num_envs)
        arguments = self._agent, state, self._carry, envs.obs, envs.first, self._key, step, envs.reward
        if at_random:
            actions = envs.random_actions(self._rng)
            self._carry = compiled.observe(*arguments)._replace(action=jnp.asarray(actions))
            return actions
        self._carry = compiled.act(*arguments, deterministic=False)
        actions = np.asarray(self._carry.action)
        if self._config.collect == "paper":
            longest = max((length for _, length in self.recent), default=1)
            uniform = self._roll_in.uniform(envs.first, longest)
            if uniform.any():
                actions = np.where(uniform[:, None], envs.random_actions(self._rng), actions)
                self._carry = self._carry._replace(action=jnp.asarray(actions))
        return actions

    def receive(self) -> None:
        """Wait for the environments' step, append its rows to the replay, and update counters and returns."""
        counters = self._counters
        for rows in self.envs.receive():
            self.replay.append(rows)
            counters.agent_steps += int((rows.step > 0).sum())
        counters.env_steps = counters.agent_steps * self._config.repeat
        self.recent.extend((episode.ret, episode.length) for episode in self.envs.finished)
        self.envs.finished.clear()
