"""What a linear probe reads off a latent: all of it where it is there, nothing where it is not."""

import json

import numpy as np
import pytest

from mulv.agents.mulv.config import MuLVConfig
from mulv.envs import Lanes, make_env
from mulv.nets.trunk import TrunkConfig
from mulv.run.probe import ProbeData, linear_probe
from mulv.run.train import train
from tests.run.support import tiny

TINY_MULV = MuLVConfig(
    window=2, n_step=2, batch_size=8, latent_dim=8, features=16, trunk=TrunkConfig(width=16, depth=1)
)


def test_a_linear_image_is_read_exactly_and_noise_is_not():
    rng = np.random.default_rng(0)
    hidden = rng.normal(size=(400, 2))
    mixed = np.concatenate([hidden @ rng.normal(size=(2, 5)) + 3.0, rng.normal(size=(400, 3))], axis=1)
    predicted, r2 = linear_probe(mixed[:200], hidden[:200], mixed[200:], hidden[200:])
    assert (r2 > 0.999).all()
    np.testing.assert_allclose(predicted, hidden[200:], atol=0.05)
    _, nothing = linear_probe(mixed[:200, 5:], hidden[:200], mixed[200:, 5:], hidden[200:])
    assert (nothing < 0.1).all()


def test_what_was_fitted_is_not_what_is_tested():
    """A latent that only names its episode explains the fitted ones perfectly; that must not count."""
    rng, data = np.random.default_rng(0), ProbeData()
    names, constants = rng.normal(size=(4, 6)), rng.normal(size=(4, 1))
    for _ in range(50):
        data.add(names, np.zeros((4, 1)), constants, np.arange(4))
    probe = data.fit()
    assert probe is not None
    assert probe.hidden.shape == (100, 1)  # episodes 1 and 3
    assert probe.r2[0] < 0.5


def test_one_episode_is_too_few():
    data = ProbeData()
    data.add(np.zeros((1, 2)), np.zeros((1, 1)), np.zeros((1, 1)), np.arange(1))
    assert data.fit() is None
    assert ProbeData().fit() is None


@pytest.mark.parametrize("task", ["HalfCheetah-P", "cheetah-run-P"])
def test_kept_and_hidden_make_up_the_whole_observation(task):
    masked = Lanes.of(lambda: make_env(task), 2, lambda lane, episode: lane)
    masked.start()
    full = Lanes.of(lambda: make_env(task.replace("-P", "-F")), 2, lambda lane, episode: lane)
    full.start()
    action = np.full((2, masked.spec.act_dim), 0.3, np.float32)
    for _ in range(3):
        masked.step(action)
        full.step(action)
    assert masked.hidden is not None
    together = np.concatenate([masked.obs, masked.hidden], axis=1)
    np.testing.assert_allclose(np.sort(together), np.sort(full.obs), rtol=1e-6)
    assert full.hidden is None


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
    for evaluation in evaluations:
        assert evaluation["probe/hidden_r2"] <= 1
        assert evaluation["probe/hidden_r2_worst"] <= evaluation["probe/hidden_r2"]
    with np.load(run / "probe.npz") as saved:
        assert saved["hidden"].shape == saved["predicted"].shape
        assert saved["r2"].mean() == pytest.approx(evaluations[-1]["probe/hidden_r2"])
    last = json.loads((run / "metrics.jsonl").read_text().splitlines()[-1])
    assert len(last["representation/kl_per_latent"]) == 8
    assert sum(last["representation/kl_per_latent"]) >= 0
    assert 0 < last["representation/effective_rank"] <= 16
    assert last["train/bellman_residual"] > 0


def test_looking_does_not_change_what_is_learned(run, tmp_path):
    """Metrics are drawn from a stream of their own: a run that logs more often is the same run."""
    train(looked_at(every=500), tmp_path / "seldom", progress=False)
    often, seldom = ([e["returns"] for e in evaluations_of(path)] for path in (run, tmp_path / "seldom"))
    assert often == seldom
