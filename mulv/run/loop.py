"""The training loop: the only code in mulv with mutable state; agents and updates are pure functions.

env ──Step──▶ replay ──Batch──▶ update(state, batch, key) ──▶ state, metrics ──▶ log, checkpoint
 ▲                                                              │
 └──── act(state, memory, noise) ◀── observe(state, memory, a, o) ◀───┘
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from typing import Any

import gymnasium as gym
import jax
import numpy as np

from mulv.agents.base import AbstractAgent
from mulv.core.errors import NonFiniteError
from mulv.core.types import AnyBatch, Metrics, PyTree
from mulv.data import Replay
from mulv.envs import VectorEnv
from mulv.run import checkpoint, compiled, seeding
from mulv.run.collection import Collector
from mulv.run.config import RunConfig
from mulv.run.counters import Counters, crossed
from mulv.run.diagnostics.latent_projection import latent_projection
from mulv.run.diagnostics.reconstructions import reconstruction_grid
from mulv.run.evaluation import Evaluation, Evaluator, Stopped
from mulv.run.interrupts import Interrupted, Interrupts
from mulv.run.logging import Logger
from mulv.run.progress import Watcher
from mulv.run.runtime import give_back_memory
from mulv.run.seeding import Stream
from mulv.run.updates import Batches


class Trainer:
    """A run in progress: agent state, replay, environments and counters, and the loop that advances them."""

    def __init__(
        self,
        config: RunConfig,
        agent: AbstractAgent,
        envs: VectorEnv,
        replay: Replay,
        logger: Logger,
        make: Callable[[], gym.Env],
        counters: Counters,
    ):
        self.config, self.agent, self.replay, self.logger = config, agent, replay, logger
        self.counters = counters
        self.state = compiled.init(agent, seeding.key(config.seed, Stream.INIT))
        self.keys = {s: seeding.key(config.seed, s) for s in (Stream.ACT, Stream.UPDATE)}
        self.rngs = {s: seeding.generator(config.seed, s) for s in (Stream.REPLAY, Stream.WARM_UP)}
        self.batches = Batches(config, agent, replay, self.counters, self.rngs[Stream.REPLAY])
        self.collector = Collector(
            config, agent, envs, replay, counters, self.keys[Stream.ACT], self.rngs[Stream.WARM_UP]
        )
        self.starts_trained = False  # if True, the warm-up steps use the policy, not random actions
        self.evaluate_now = False  # an evaluation is due; stays True if it is interrupted
        self.metrics: Metrics = {}
        self._finite: jax.Array | None = None
        self.evaluator = Evaluator(
            make, episodes=config.eval_episodes, seed=config.seed, timeout=config.env_timeout
        )

    def state_dict(self) -> dict[str, Any]:
        """Everything a checkpoint stores besides the agent's state, as JSON types."""
        self.replay.flush()
        begins = bool(self.collector.envs.first.all())
        return {
            "counters": asdict(self.counters),
            "replay_counts": self.replay.counts.tolist(),
            # If every environment is at an episode's start, `restore` writes these first rows again.
            "replay_sums": self.replay.checksums(
                rewritten=int(begins and self.collector.envs.episodes_begun.any())
            ),
            "episodes_begun": self.collector.envs.episodes_begun.tolist(),
            "at_episode_end": begins,
            "evaluate_now": self.evaluate_now,
            "recent": list(self.collector.recent),
            "rngs": {stream.name: rng.bit_generator.state for stream, rng in self.rngs.items()},
            "offsets": self.logger.offsets,
        }

    def restore(self, state: PyTree, saved: dict[str, Any]) -> bool:
        """Continue from an agent state and a `state_dict`; returns whether an episode had to be truncated.

        The replay must already be at the saved counts. The simulator's state is not in a checkpoint, so an
        episode that was running is marked as truncated, and a new one begins.
        """
        self.state = compiled.pack(state)
        self.collector.recent.extend((ret, length) for ret, length in saved["recent"])
        self.evaluate_now = saved["evaluate_now"]
        for name, rng_state in saved["rngs"].items():
            self.rngs[Stream[name]].bit_generator.state = rng_state
        self.collector.envs.episodes_begun[:] = saved["episodes_begun"]
        if not self.collector.envs.episodes_begun.any():  # no environment step yet, only offline updates
            return False
        if saved["at_episode_end"]:
            # The new episodes are already counted and their first rows written; `start` does both again.
            self.collector.envs.episodes_begun -= 1
            self.replay.counts -= 1
        else:
            self.replay.mark_truncated()
        self.replay.append(self.collector.envs.start())
        return not saved["at_episode_end"]

    @property
    def tree(self) -> PyTree:
        """The agent's state as a pytree, unpacked."""
        return compiled.unpack(self.agent, self.state)

    def run(self, save: Callable[[], None], interrupts: Interrupts, progress: Watcher) -> None:
        """Train, log, evaluate and save until all offline updates and then all environment steps are done."""
        for batches in self.rounds(save, interrupts, progress):
            self.learn(batches)

    def rounds(
        self, save: Callable[[], None], interrupts: Interrupts, progress: Watcher
    ) -> Iterator[AnyBatch]:
        """The training loop as a generator: yields the batches of each round of updates.

        The caller must apply the updates (`learn`) before it asks for the next round.
        """
        config, counters = self.config, self.counters
        total, evaluate_every = config.offline_updates + (config.total_steps or 0), config.eval_every or 0
        save_due_at: int | None = None
        started, start = time.perf_counter(), counters.clock
        while counters.clock < total or self.evaluate_now:
            if not self.evaluate_now:
                before = counters.clock
                if counters.offline_updates < config.offline_updates:
                    number = self.batches.of_data
                    yield self._at_once(number)
                    counters.offline_updates += number
                elif self.batches.pretrains:
                    yield self._at_once(self.batches.of_pretraining)
                    progress.pretrained(counters.updates, self.batches.pretraining)
                else:
                    self.send()
                    if config.overlap:  # the device updates while the environments step
                        yield from self.due()
                    self.collector.receive()
                    if not config.overlap:
                        yield from self.due()
                after = counters.clock
                self.evaluate_now = crossed(before, after, evaluate_every) or (
                    evaluate_every > 0 and after >= total
                )
                if crossed(before, after, config.log_every):
                    self.log(fps=(after - start) / (time.perf_counter() - started))
                if save_due_at is None and crossed(before, after, config.checkpoint_every):
                    save_due_at = after
                progress.step(after, self.collector.recent[-1][0] if self.collector.recent else None)
            if self.evaluate_now:
                try:
                    progress.evaluated(self.evaluate(interrupts))
                    self.evaluate_now = False
                except Stopped:
                    pass
            if interrupts.signum is not None:
                self.check_finite()
                save()
                raise Interrupted(interrupts.signum)
            # Only a checkpoint at an episode's end resumes bit for bit: wait for one, but not forever.
            overdue = save_due_at is not None and counters.clock - save_due_at >= config.checkpoint_every
            if (
                save_due_at is not None
                and (self.collector.envs.first.all() or overdue)
                and counters.clock < total
            ):
                self.check_finite()
                save()
                give_back_memory()
                save_due_at = None
        self.check_finite()
        save()

    def send(self) -> None:
        """Choose an action for every environment and send it, without waiting for the step."""
        at_random = self.batches.warming_up and not self.starts_trained
        actions = self.collector.choose(self.state, at_random=at_random)
        # Computing the action waited for the last update, so this check costs nothing here.
        self.check_finite()
        self.collector.envs.send(actions)

    def due(self) -> Iterator[AnyBatch]:
        """Yields the batches of one round of updates, if enough updates are due."""
        if number := self.batches.of_steps:
            yield self.batches.draw(number, self.state)

    def _at_once(self, number: int) -> AnyBatch:
        """The batches of one round of updates without environment steps (offline or pretraining)."""
        batches = self.batches.draw(number, self.state)
        self.check_finite()  # checks the previous round, which ran while these were drawn
        return batches

    def learn(self, batches: AnyBatch) -> None:
        """Run one round of updates in one compiled call, without waiting for its result."""
        key, first = self.keys[Stream.UPDATE], np.int32(self.counters.updates)
        self.take(compiled.update(self.agent, self.state, batches, key, first))

    def take(self, learned: compiled.Learned) -> None:
        """Store the result of a round of updates and count them."""
        self.state, self.metrics, self._finite = learned
        self.counters.updates += self._finite.size

    def check_finite(self) -> None:
        """Raise `NonFiniteError` if an update of the last round produced a NaN or an infinity."""
        finite, self._finite = self._finite, None
        if finite is None or np.all(finite):
            return
        names = checkpoint.non_finite_leaves(self.metrics) or checkpoint.non_finite_leaves(self.tree)
        update = self.counters.updates - len(finite) + 1 + int(np.argmin(finite))
        raise NonFiniteError(
            f"NaN or inf in {', '.join(names[:4])} at update {update}, env step {self.counters.env_steps}; "
            "the checkpoints before it are finite"
        )

    def evaluate(self, interrupts: Interrupts) -> Evaluation:
        """Evaluate the agent in separate environments, and log the result and pictures, if there are any."""
        self.check_finite()
        evaluation = self.evaluator(
            self.agent,
            self.state,
            number=len(self.logger.evaluations),
            should_stop=lambda: interrupts.pending,
        )
        self.logger.evaluation(asdict(self.counters), evaluation)
        if (
            self.config.latent_projection
            and (where := latent_projection(self.agent, self.state, self.replay)) is not None
        ):
            self.logger.latent_projection(where)
        if (picture := reconstruction_grid(self.agent, self.state, self.replay)) is not None:
            self.logger.reconstructions(self.counters.clock, picture)
        return evaluation

    def _all_metrics(self) -> Metrics:
        """Metrics of the last update and of `agent.inspect` on a batch that training does not use."""
        if not self.metrics:
            return {}
        config, step = self.config, self.counters.clock
        rng = seeding.generator(config.seed, Stream.INSPECT, step)
        batch = jax.tree.map(lambda leaf: leaf[0], self.batches.draw(1, self.state, rng))
        key = jax.random.fold_in(seeding.key(config.seed, Stream.INSPECT), step)
        return self.metrics | compiled.inspect(self.agent, self.state, batch, key)

    def log(self, fps: float) -> None:
        """Write one line of metrics; this waits for the device."""
        values = {name: np.asarray(value).tolist() for name, value in self._all_metrics().items()}
        if self.collector.recent:
            returns, lengths = zip(*self.collector.recent, strict=True)
            values |= {
                "rollout/ep_rew_mean": float(np.mean(returns)),
                "rollout/ep_len_mean": float(np.mean(lengths)),
            }
        self.logger.metrics(asdict(self.counters), {**values, "time/fps": round(fps, 2)})
