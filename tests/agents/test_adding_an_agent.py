"""An algorithm is its own file and one line of the registry: here a small recurrent one, added and run."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import equinox as eqx
import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from mulv.agents import ALGORITHMS, AbstractAgent, AgentConfig, Algorithm
from mulv.api import learner_class, load
from mulv.core.learner import Trained, descend, start_training
from mulv.core.spec import EnvSpec, SequenceSpec
from mulv.run import compiled
from mulv.run.train import train
from tests.run.support import fingerprint, tiny

HIDDEN = 8


@dataclass(frozen=True)
class BeliefConfig(AgentConfig):
    """Hyperparameters of the agent below."""

    length: int = 6
    """Steps of a sequence."""


class Networks(eqx.Module):
    """A belief, what it expects to see next, and an actor on it."""

    cell: eqx.nn.GRUCell
    predictor: eqx.nn.Linear
    actor: eqx.nn.Linear

    def __init__(self, spec: EnvSpec, key):
        cell, predictor, actor = jax.random.split(key, 3)
        self.cell = eqx.nn.GRUCell(spec.obs_dim + spec.act_dim, HIDDEN, key=cell)
        self.predictor = eqx.nn.Linear(HIDDEN + spec.act_dim, spec.obs_dim, key=predictor)
        self.actor = eqx.nn.Linear(HIDDEN, spec.act_dim, key=actor)

    def advance(self, belief, a_prev, o_h, first):
        belief = jnp.where(first, 0.0, belief)
        return self.cell(jnp.concatenate([o_h, a_prev]), belief)


class BeliefState(NamedTuple):
    networks: Trained


@dataclass(frozen=True)
class BeliefAgent(AbstractAgent):
    """Predicts the next observation from a recurrent belief; its actor imitates the actions of the data."""

    config: BeliefConfig
    spec: EnvSpec

    @property
    def batch_spec(self) -> SequenceSpec:
        return SequenceSpec(self.config.batch_size, self.config.length)

    @property
    def optimiser(self):
        return optax.adam(self.config.learning_rate)

    def init(self, key):
        return BeliefState(start_training(self.optimiser, Networks(self.spec, key)))

    def init_memory(self):
        return jnp.zeros(HIDDEN)

    def observe(self, state, memory, a_prev, r_prev, o_h, key):
        return state.networks.params.advance(memory, a_prev, o_h, False)

    def act(self, state, memory, noise):
        mean = state.networks.params.actor(memory)
        return jnp.tanh(mean if noise is None else mean + 0.3 * noise)

    def beliefs(self, networks, sequence):
        def step(belief, at):
            belief = networks.advance(belief, *at)
            return belief, belief

        return jax.lax.scan(step, jnp.zeros(HIDDEN), (sequence.action, sequence.obs, sequence.first))[1]

    def update(self, state, batch, key):
        def loss(networks):
            def one(sequence):
                beliefs = self.beliefs(networks, sequence)[:-1]
                taken, came = sequence.action[1:], sequence.obs[1:]
                seen = jax.vmap(networks.predictor)(jnp.concatenate([beliefs, taken], axis=1))
                done = jnp.tanh(jax.vmap(networks.actor)(beliefs))
                within = ~sequence.first[1:, None]
                return jnp.mean(within * (seen - came) ** 2), jnp.mean(within * (done - taken) ** 2)

            predicted, imitated = jax.tree.map(jnp.mean, jax.vmap(one)(batch))
            return predicted + imitated, {"train/prediction": predicted, "train/imitation": imitated}

        (_, metrics), gradient = eqx.filter_value_and_grad(loss, has_aux=True)(state.networks.params)
        return BeliefState(descend(self.optimiser, state.networks, gradient)[0]), metrics


CONFIG = BeliefConfig(batch_size=8, learning_rate=3e-3)


@pytest.fixture(autouse=True)
def _added(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ALGORITHMS, "belief", Algorithm(BeliefAgent, BeliefConfig, {"default": CONFIG}))


def run(directory: Path, steps: int = 800, **options):
    config = tiny(algo="belief", agent=CONFIG, total_steps=steps)
    return train(config, directory, progress=False, **options)


def test_it_trains_evaluates_and_writes_its_metrics(tmp_path: Path) -> None:
    outcome = run(tmp_path / "run")
    assert outcome.result["method"] == "belief"
    assert len(outcome.result["eval_returns"]) == 2
    lines = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    errors = [line["train/prediction"] for line in lines if "train/prediction" in line]
    assert np.mean(errors[-3:]) < 0.8 * np.mean(errors[:3])


def test_it_resumes_bit_for_bit(tmp_path: Path) -> None:
    run(tmp_path / "whole")
    run(tmp_path / "parts", steps=400)
    run(tmp_path / "parts", resume=True)
    assert fingerprint(tmp_path / "whole") == fingerprint(tmp_path / "parts")


def test_acting_carries_the_belief_that_training_unrolls() -> None:
    """Over two episodes: the first's end must not reach the second's beliefs."""
    agent = BeliefAgent(CONFIG, EnvSpec((2,), 1))
    state = agent.init(jax.random.key(0))
    rng = np.random.default_rng(0)
    obs, first = rng.normal(size=(7, 2)).astype(np.float32), np.array([1, 0, 0, 0, 1, 0, 0], bool)
    carry, taken, beliefs = compiled.init_carry(agent, 1), [np.zeros(1, np.float32)], []
    for h in range(7):
        carry = compiled.act(
            agent, compiled.pack(state), carry, obs[h : h + 1], first[h : h + 1], jax.random.key(1),
            jnp.int32(h), deterministic=False,
        )  # fmt: skip
        taken.append(np.asarray(carry.action[0]))
        beliefs.append(np.asarray(carry.memory[0]))

    class Sequence(NamedTuple):
        action: np.ndarray
        obs: np.ndarray
        first: np.ndarray

    actions = np.where(first[:, None], 0, np.stack(taken[:-1]))
    unrolled = agent.beliefs(state.networks.params, Sequence(actions, obs, first))
    np.testing.assert_allclose(np.stack(beliefs), unrolled, rtol=1e-5, atol=1e-6)
    assert np.abs(np.diff(np.stack(beliefs), axis=0)).min(axis=1).max() > 0


def test_it_is_used_from_python_and_saved_and_loaded(tmp_path: Path) -> None:
    options = {"batch_size": 8, "learning_starts": 50, "eval_every": 0}
    agent = learner_class("belief")(gym.make("Pendulum-v1"), **options)
    agent.learn(120)
    first, memory = agent.predict(np.ones(3))
    second, _ = agent.predict(np.ones(3), memory)
    assert not np.array_equal(first, second)  # it remembers
    agent.save(tmp_path / "agent")
    loaded = load(tmp_path / "agent", gym.make("Pendulum-v1"))
    np.testing.assert_array_equal(loaded.predict(np.ones(3), memory)[0], second)
    agent.close()
