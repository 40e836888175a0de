"""How many updates are due, and the batches for them."""

import numpy as np

from mulv.agents.base import AbstractAgent
from mulv.core.spec import SequenceSpec
from mulv.core.types import AnyBatch
from mulv.data import Replay
from mulv.run import compiled
from mulv.run.config import RunConfig
from mulv.run.counters import Counters
from mulv.run.embeddings import Embeddings


class Batches:
    """Draws the batches of each round of updates from the replay; reads `counters`, never changes them."""

    def __init__(
        self,
        config: RunConfig,
        agent: AbstractAgent,
        replay: Replay,
        counters: Counters,
        rng: np.random.Generator,
    ):
        self._config, self._agent, self._replay = config, agent, replay
        self._counters, self._rng = counters, rng
        encoder = agent.encoder
        self.pretraining = encoder.pretraining if encoder else 0
        self._embeddings = Embeddings(agent, replay) if encoder else None

    @property
    def warming_up(self) -> bool:
        """Whether the run is before `learning_starts`: actions are uniform, and there are no updates."""
        return self._counters.env_steps < self._config.random_steps

    @property
    def pretrains(self) -> bool:
        """Whether the agent's encoder still has to be pretrained, on the data of the warm-up."""
        waiting = self.warming_up or len(self._replay) <= self._replay.layout.lanes  # only the rows of resets
        return self._counters.updates < self.pretraining and not waiting

    @property
    def of_steps(self) -> int:
        """Updates due after the environment steps taken so far; 0 until there are enough for a round."""
        config, counters = self._config, self._counters
        learned_from = counters.agent_steps - config.random_steps // config.repeat
        before = min(counters.updates, max(counters.offline_updates, self.pretraining))
        due = int(learned_from * config.replay_ratio) - (counters.updates - before)
        return due if due >= self._round else 0

    @property
    def of_data(self) -> int:
        """Updates in the next round of offline training."""
        return min(self._round, self._config.offline_updates - self._counters.offline_updates)

    @property
    def of_pretraining(self) -> int:
        """Updates in the next round of pretraining."""
        return min(self._round, self.pretraining - self._counters.updates)

    @property
    def _round(self) -> int:
        return max(1, int(self._config.update_every * self._config.replay_ratio))

    def draw(self, updates: int, state: compiled.Packed, rng: np.random.Generator | None = None) -> AnyBatch:
        """Batches for `updates` updates. With a separate `rng`, the run's random stream does not advance."""
        kept = self._embeddings
        vectors = None if kept is None else kept.at(self._counters.updates, state)
        spec, rng = self._agent.batch_spec, rng or self._rng
        if isinstance(spec, SequenceSpec):
            return self._replay.sample_sequences(spec, updates, rng, vectors)
        return self._replay.sample(spec, updates, rng, vectors)

    def forget(self) -> None:
        """Drop what a checkpoint does not store, so that this run continues just as a resumed one would."""
        if self._embeddings is not None:
            self._embeddings.forget()
