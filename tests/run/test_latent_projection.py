"""The picture of where the experience lies: principal components that are principal, of the replay's rows."""

from pathlib import Path

import numpy as np
import pytest

from mulv.agents.mulv.config import MuLVConfig
from mulv.bench.curves import projection_picture
from mulv.core.options import with_options
from mulv.nets.trunk import TrunkConfig
from mulv.run.diagnostics.latent_projection import POINTS, principal_components
from mulv.run.train import train
from tests.run.support import tiny

AGENT = with_options(
    MuLVConfig(window=2, batch_size=16, trunk=TrunkConfig("mlp", 16, 1)),
    {"latent.dim": 4, "critic.features": 16, "elbo.future": 1},
)


def test_the_two_directions_are_the_widest_and_their_shares_those_of_the_variance():
    rng = np.random.default_rng(0)
    turn, _ = np.linalg.qr(rng.normal(size=(5, 5)))
    hidden = rng.normal(size=(4000, 5)) * [5.0, 3.0, 0.5, 0.1, 0.1]
    points, share = principal_components(hidden @ turn.T + 7.0)
    for i in range(2):
        assert abs(np.corrcoef(points[:, i], hidden[:, i])[0, 1]) > 0.99
    np.testing.assert_allclose(share, np.array([25.0, 9.0]) / 34.27, rtol=0.1)


@pytest.mark.parametrize("asked", [True, False])
def test_a_run_saves_where_it_was_when_asked_and_only_then(tmp_path: Path, asked: bool) -> None:
    config = tiny(algo="mulv", agent=AGENT, total_steps=200, eval_every=200, latent_projection=asked)
    train(config, tmp_path / "run", progress=False)
    saved = tmp_path / "run" / "latent_projection.npz"
    assert saved.exists() == asked
    if not asked:
        return
    with np.load(saved) as visits:
        assert visits["points"].shape == (POINTS, 2)
        assert np.ptp(visits["points"], axis=0).min() > 0
        assert (np.diff(visits["age"]) >= 0).all()
        # Of 202 rows the last two are the episode's end and the next one's beginning, where nothing starts.
        assert (visits["age"][0], visits["age"][-1]) == (0.0, pytest.approx(199 / 201))
        rewards = np.fromfile(tmp_path / "run" / "replay" / "reward.bin", np.float32)
        assert set(visits["reward"]) <= set(rewards)
    picture = projection_picture(saved, "where it was", tmp_path / "visits.png")
    assert picture.read_bytes()[:4] == b"\x89PNG"
