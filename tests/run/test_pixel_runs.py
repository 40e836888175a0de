"""µLV-Rep on frames end to end: trained, resumed, loaded, evaluated, looked at."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import imageio.v3 as imageio
import numpy as np
import pytest

import mulv
from mulv.agents.mulv.config import MuLVConfig
from mulv.agents.mulv.vae import ImageConfig
from mulv.core.errors import MulvError
from mulv.core.options import with_options
from mulv.core.spec import EnvSpec
from mulv.nets.trunk import TrunkConfig
from mulv.run.config import RunConfig
from mulv.run.diagnostics.reconstructions import GAP, SCALE, tile
from mulv.run.diagnostics.video import Film
from mulv.run.train import train
from tests.run.support import fingerprint, tiny

SEES = with_options(
    MuLVConfig(
        window=3,
        batch_size=4,
        trunk=TrunkConfig("mlp", 8, 1),
        image=ImageConfig(embedding_dim=3, channels=2, batch_size=2, pretraining=6),
    ),
    {"latent.dim": 4, "critic.features": 8},
)


def frames(**changes: object) -> RunConfig:
    """Episodes of 200 steps, 100 decisions; rounds of two updates."""
    options = {"task": "Pendulum-px", "algo": "mulv", "agent": SEES, "total_steps": 600, "eval_episodes": 1}
    return tiny(**{**options, "replay_ratio": 0.5, **changes})


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sees") / "run"
    train(frames(), path, progress=False)
    return path


def metrics(run: Path) -> list[dict[str, float]]:
    return [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]


def test_pretraining_comes_on_top_of_the_updates_that_steps_are_worth(whole: Path) -> None:
    result = json.loads((whole / "result.json").read_text())
    decisions, warm_up = 300, 50
    worth = (decisions - warm_up) * 0.5
    assert SEES.image.pretraining + worth - 2 <= result["updates"] <= SEES.image.pretraining + worth
    at = {line["agent_steps"]: line["updates"] for line in metrics(whole)}
    assert at[25] == 0
    assert at[75] >= SEES.image.pretraining + 10  # at once where learning starts, not spread over the run
    assert all(np.isfinite(line["train/critic_loss"]) for line in metrics(whole) if "image/error" in line)


def test_a_run_that_sees_resumes_bit_for_bit(whole: Path, tmp_path: Path) -> None:
    cut = shutil.copytree(whole, tmp_path / "cut")
    shutil.rmtree(cut / "checkpoints" / "0000000600")
    shutil.rmtree(cut / "reconstructions")
    train(frames(), cut, progress=False, resume=True)
    assert fingerprint(cut) == fingerprint(whole)
    newest = "reconstructions/0000000600.png"
    assert (cut / newest).read_bytes() == (whole / newest).read_bytes()


def test_strips_show_the_frames_of_the_replay_above_what_is_drawn_of_them(whole: Path) -> None:
    shown = np.stack([imageio.imread(path) for path in sorted((whole / "reconstructions").glob("*.png"))])
    assert len(shown) == 2  # evaluations
    small = shown[-1][::SCALE, ::SCALE]
    kept = np.fromfile(whole / "replay" / "obs.bin", np.uint8).reshape(-1, 64, 64, 3)
    np.testing.assert_array_equal(small[:64, :64], kept[0])
    np.testing.assert_array_equal(small[2 * (64 + GAP) : 2 * (64 + GAP) + 64, :64], kept[1])
    drawn = small[64 + GAP : 2 * 64 + GAP, :64].astype(int)
    assert np.abs(drawn - kept[0]).mean() > 1  # a VAE this small and young draws badly


def test_tiles_lie_where_they_belong() -> None:
    pictures = np.arange(6, dtype=np.uint8).reshape(3, 2, 1, 1, 1).repeat(3, axis=-1)
    whole = tile(pictures)[::SCALE, ::SCALE, 0]
    np.testing.assert_array_equal(whole, [[0, 128, 2, 128, 4], [128] * 5, [1, 128, 3, 128, 5]])


def test_what_was_trained_is_loaded_and_filmed(whole: Path, tmp_path: Path) -> None:
    agent = mulv.load(whole)
    evaluation = agent.evaluate(episodes=1, seed=5, video=tmp_path / "episode.gif")
    assert evaluation.returns == agent.evaluate(episodes=1, seed=5).returns
    film = imageio.imread(tmp_path / "episode.gif", index=None)
    assert film.shape[1:3] == (256, 256)
    assert 50 < len(film) <= evaluation.lengths[0]  # equal frames that follow one another are one
    env = mulv.make_env("Pendulum-px")
    action, memory = agent.predict(env.reset(seed=0)[0])
    again, _ = agent.predict(env.step(action)[0], memory)
    assert action.shape == again.shape == (1,)
    assert not np.array_equal(action, again)


def test_without_memory_it_runs_too(tmp_path: Path) -> None:
    config = frames(agent=replace(SEES, window=1), total_steps=240, eval_every=0, checkpoint_every=10_000)
    result = train(config, tmp_path / "blind", progress=False).result
    assert result["updates"] > SEES.image.pretraining
    assert result["config"]["agent"]["window"] == 1


@pytest.mark.parametrize(
    ("name", "spec", "message"),
    [
        ("film.gif", EnvSpec((3,), 1), "-px"),
        ("film.avi", EnvSpec((64, 64, 3), 1, obs_dtype="uint8"), "neither"),
        ("nowhere/film.gif", EnvSpec((64, 64, 3), 1, obs_dtype="uint8"), "nowhere"),
    ],
)
def test_a_film_that_cannot_be_made_is_said_before_it_is_shot(
    tmp_path: Path, name: str, spec: EnvSpec, message: str
) -> None:
    with pytest.raises(MulvError, match=message):
        Film(tmp_path / name, spec)
