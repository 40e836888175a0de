"""What a regression reads off a latent: all of it where it is there, nothing where it is not."""

import json
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mulv.agents.base import AbstractWindowAgent, WindowConfig
from mulv.agents.mulv.agent import MuLV
from mulv.agents.mulv.config import MuLVConfig
from mulv.core.options import with_options
from mulv.core.spec import BatchSpec
from mulv.envs import VectorEnv, env_spec, make_env
from mulv.nets.trunk import TrunkConfig
from mulv.run import compiled
from mulv.run.diagnostics.probe import ProbeData, RecentSteps, kernel_regression
from mulv.run.evaluation import Evaluator
from mulv.run.train import train
from tests.agents.support import random_batches
from tests.run.support import tiny

TINY_MULV = with_options(
    MuLVConfig(window=2, n_step=2, batch_size=8, trunk=TrunkConfig(width=16, depth=1)),
    {"latent.dim": 8, "critic.features": 16, "elbo.posterior": "learned"},
)


def test_recent_steps_are_changes_and_actions_and_zero_before_the_start():
    recent = RecentSteps(window=3)
    recent.add(np.array([[1.0]]), np.array([[0.5]]))
    np.testing.assert_array_equal(recent.inputs(), [[1, 0, 0, 0, 0]])  # o_h, two changes, two actions
    recent.add(np.array([[4.0]]), np.array([[0.6]]))
    np.testing.assert_array_equal(recent.inputs(), [[4, 0, 3, 0, 0.5]])
    recent.add(np.array([[9.0]]), np.array([[0.7]]))
    recent.add(np.array([[7.0]]), np.array([[0.8]]))
    np.testing.assert_array_equal(recent.inputs(), [[7, 5, -2, 0.6, 0.7]])


def test_a_curved_image_is_read_where_a_linear_probe_would_see_nothing():
    x = np.random.default_rng(0).uniform(-2, 2, size=(800, 2))
    hidden = np.stack([np.square(x[:, 0]), x[:, 0] * x[:, 1]], axis=1)
    assert np.abs(np.corrcoef(x.T, hidden.T)[:2, 2:]).max() < 0.1
    _, r2 = kernel_regression(x[:400], hidden[:400], x[400:], hidden[400:])
    assert (r2 > 0.98).all()


def test_an_image_is_read_and_noise_is_not():
    rng = np.random.default_rng(0)
    hidden = rng.normal(size=(400, 2))
    mixed = np.concatenate([hidden @ rng.normal(size=(2, 5)) + 3.0, rng.normal(size=(400, 3))], axis=1)
    predicted, r2 = kernel_regression(mixed[:200], hidden[:200], mixed[200:], hidden[200:])
    assert (r2 > 0.99).all()
    spread = np.square(hidden[200:] - hidden[200:].mean(0)).sum(0)
    np.testing.assert_allclose(r2, 1 - np.square(hidden[200:] - predicted).sum(0) / spread)
    _, nothing = kernel_regression(mixed[:200, 5:], hidden[:200], mixed[200:, 5:], hidden[200:])
    assert (nothing < 0.1).all()


def test_what_was_fitted_is_not_what_is_tested():
    """A latent that only names its episode explains the fitted ones perfectly; that must not count."""
    rng, data = np.random.default_rng(0), ProbeData()
    names, constants = rng.normal(size=(4, 6)), rng.normal(size=(4, 1))
    for _ in range(50):
        data.add(names, np.zeros((4, 1)), np.zeros((4, 1)), constants, np.arange(4))
    probe = data.fit()
    assert probe is not None
    assert probe.hidden.shape == (100, 1)  # episodes 1 and 3
    assert probe.r2[0] < 0.5


def test_one_episode_is_too_few():
    data = ProbeData()
    data.add(np.zeros((1, 2)), np.zeros((1, 1)), np.zeros((1, 1)), np.zeros((1, 1)), np.arange(1))
    assert data.fit() is None
    assert ProbeData().fit() is None


@pytest.mark.parametrize("task", ["HalfCheetah-P", "cheetah-run-P"])
def test_kept_and_hidden_make_up_the_whole_observation(task):
    masked = VectorEnv.of(lambda: make_env(task), 2, lambda lane, episode: lane)
    masked.start()
    full = VectorEnv.of(lambda: make_env(task.replace("-P", "-F")), 2, lambda lane, episode: lane)
    full.start()
    action = np.full((2, masked.spec.act_dim), 0.3, np.float32)
    for _ in range(3):
        masked.step(action)
        full.step(action)
    assert masked.hidden is not None
    together = np.concatenate([masked.obs, masked.hidden], axis=1)
    np.testing.assert_allclose(np.sort(together), np.sort(full.obs), rtol=1e-6)
    assert full.hidden is None


@dataclass(frozen=True)
class Watches(AbstractWindowAgent):
    """Does nothing, and has a latent that is made of its last `looks_at` observations by hand."""

    looks_at: int = 2

    @property
    def batch_spec(self) -> BatchSpec:
        return BatchSpec(1, self.config.window, 1, 1, 1.0)

    def init(self, key):
        return jnp.zeros(1)

    def update(self, state, batch, key):
        return state, {}

    def act(self, state, memory, noise):
        return jnp.zeros(self.spec.act_dim)

    def latent(self, state, memory, a_h):
        (c, s), (c_h, s_h) = memory.obs[-2:]
        if self.looks_at == 1:
            return jnp.stack([c_h, s_h])
        return (s_h * c - c_h * s)[None]  # sin(θ_h − θ_{h−1}): the speed, but for the time of a step


def test_an_evaluation_finds_the_speed_in_a_latent_that_has_it_and_not_in_one_that_has_not():
    """Of a pendulum that shows its angle alone: two observations tell the speed, one does not."""
    spec, probes = env_spec(make_env("Pendulum-P")), {}
    for looks_at in (1, 2):
        agent = Watches(WindowConfig(window=2), spec, looks_at)
        evaluator = Evaluator(lambda: make_env("Pendulum-P"), episodes=8, seed=0)
        state = compiled.init(agent, jax.random.key(0))
        probes[looks_at] = evaluator(agent, state).probe.summary()
        evaluator.close()
    assert probes[2]["probe/hidden_r2"] > 0.98
    assert probes[1]["probe/hidden_r2"] < 0.5
    # What one observation tells is what a latent of one observation is compared with.
    for found in probes.values():
        assert found["probe/hidden_r2_without_memory"] == pytest.approx(probes[1]["probe/hidden_r2"])


def test_the_summary_has_the_mean_and_the_worst_of_what_is_hidden():
    rng, data = np.random.default_rng(0), ProbeData()
    for _ in range(50):
        hidden = rng.normal(size=(4, 2))
        data.add(
            hidden[:, :1], hidden, np.zeros((4, 1)), hidden, np.arange(4)
        )  # the first entry, not the second
    summary = data.fit().summary()
    assert summary["probe/hidden_r2"] == pytest.approx(0.5, abs=0.1)
    assert summary["probe/hidden_r2_worst"] == pytest.approx(0.0, abs=0.1)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    path = tmp_path_factory.mktemp("probe") / "run"
    train(looked_at(every=50), path, progress=False)
    return path


def looked_at(every: int):
    return tiny(algo="mulv", agent=TINY_MULV, total_steps=600, log_every=every)


def evaluations_of(path) -> list[dict]:
    return [json.loads(line) for line in (path / "evaluations.jsonl").read_text().splitlines()]


def test_a_run_records_what_its_latent_knows_and_how_it_works(run):
    evaluations = evaluations_of(run)
    assert len(evaluations) == 2
    with np.load(run / "probe.npz") as saved:
        hidden, predicted = saved["hidden"], saved["predicted"]
    unexplained = np.square(hidden - predicted).sum() / np.square(hidden - hidden.mean()).sum()
    assert evaluations[-1]["probe/hidden_r2"] == pytest.approx(1 - unexplained)
    last = json.loads((run / "metrics.jsonl").read_text().splitlines()[-1])
    agent = MuLV(TINY_MULV, env_spec(make_env("Pendulum-P")))
    batch = jax.tree.map(lambda leaf: jnp.asarray(leaf[0]), random_batches(agent, 1))
    key = jax.random.key(0)
    looked_into = jax.eval_shape(agent.inspect, jax.eval_shape(agent.init, key), batch, key)
    assert {name: np.shape(last[name]) for name in looked_into} == {
        name: leaf.shape for name, leaf in looked_into.items()
    }
    assert min(last["representation/kl_per_latent"]) > 0


def test_looking_does_not_change_what_is_learned(run, tmp_path):
    """Metrics are drawn from a stream of their own: a run that logs more often is the same run."""
    train(looked_at(every=500), tmp_path / "seldom", progress=False)
    often, seldom = ([e["returns"] for e in evaluations_of(path)] for path in (run, tmp_path / "seldom"))
    assert often == seldom
