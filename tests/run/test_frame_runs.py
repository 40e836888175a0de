"""Runs on frames: resumed, loaded, in worker processes, and with updates while environments step."""

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from mulv.agents.drqv2 import DrQV2Config
from mulv.api import load
from mulv.envs import VectorEnv
from mulv.nets.trunk import TrunkConfig
from mulv.run.config import RunConfig, config_hash, from_json, to_json
from mulv.run.loop import Trainer
from mulv.run.train import complete, train
from tests.run.support import fingerprint, tiny

EYES = DrQV2Config(
    window=2, batch_size=4, trunk=TrunkConfig("mlp", 8, 1), feature_dim=4, channels=4, halvings=4
)
pytestmark = pytest.mark.usefixtures("plain_convolutions")


def frames(**changes: object) -> RunConfig:
    """Pendulum-px's episodes are 200 steps, 100 decisions."""
    options = {"task": "Pendulum-px", "algo": "drqv2", "agent": EYES, "total_steps": 600}
    return tiny(**{**options, "eval_every": 600, "eval_episodes": 1, **changes})


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("frames") / "run"
    train(frames(), path, progress=False)
    return path


def test_decisions_are_counted_twice_and_frames_kept_once(whole: Path) -> None:
    kept = np.fromfile(whole / "replay" / "step.bin", np.int32)
    assert (kept[:303] == np.tile(np.arange(101), 3)).all()
    shown = np.fromfile(whole / "replay" / "obs.bin", np.uint8).reshape(-1, 64, 64, 3)
    assert len(np.unique(shown[:303].reshape(303, -1), axis=0)) > 250


def test_a_run_on_frames_resumes_bit_for_bit(whole: Path, tmp_path: Path) -> None:
    cut = shutil.copytree(whole, tmp_path / "cut")
    shutil.rmtree(cut / "checkpoints" / "0000000600")
    before = (cut / "replay" / "obs.bin").read_bytes()
    replaced = np.memmap(cut / "replay" / "obs.bin", np.uint8, "r+", shape=(303, 64, 64, 3))
    replaced[250:] = 7  # what was written after the checkpoint must be written again
    del replaced
    train(frames(), cut, progress=False, resume=True)
    assert (cut / "replay" / "obs.bin").read_bytes() == before
    assert fingerprint(cut) == fingerprint(whole)


def test_a_loaded_run_does_in_its_evaluation_what_the_run_did(whole: Path) -> None:
    recorded = json.loads((whole / "result.json").read_text())["eval_returns"]
    assert len(recorded) == 1
    assert load(whole).evaluate(episodes=1).returns == recorded[-1]
    assert load(whole).evaluate(episodes=1, seed=1).returns != recorded[-1]


def test_worker_processes_give_the_same_frames(whole: Path, tmp_path: Path) -> None:
    train(frames(env_workers=True), tmp_path / "there", progress=False)
    assert fingerprint(tmp_path / "there") == fingerprint(whole)


def test_learning_from_data_without_the_newest_step_is_another_run(whole: Path, tmp_path: Path) -> None:
    train(frames(overlap=False), tmp_path / "one", progress=False)
    assert fingerprint(tmp_path / "one")["parameters"] != fingerprint(whole)["parameters"]


@pytest.mark.parametrize(
    ("overlap", "before", "after"), [(True, "send", "receive"), (False, "receive", "send")]
)
def test_updates_are_sent_off_before_the_environments_are_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, overlap: bool, before: str, after: str
) -> None:
    calls: list[str] = []

    def spied(name: str, original: Callable) -> Callable:
        def spy(*args: object) -> object:
            calls.append(name)
            return original(*args)

        return spy

    for owner, name in ((VectorEnv, "send"), (VectorEnv, "receive"), (Trainer, "learn")):
        monkeypatch.setattr(owner, name, spied(name, getattr(owner, name)))
    config = frames(total_steps=20, eval_every=0, learning_starts=0, update_every=1, overlap=overlap)
    train(config, tmp_path / "run", progress=False)
    learned = [i for i, name in enumerate(calls[:-1]) if name == "learn"]
    assert len(learned) > 5
    assert {(calls[i - 1], calls[i + 1]) for i in learned} == {(before, after)}


def test_frames_overlap_unless_told_and_vectors_do_not() -> None:
    assert complete(RunConfig(task="Pendulum-px")).overlap is True
    assert complete(RunConfig(task="Pendulum-px", overlap=False)).overlap is False
    assert not complete(RunConfig(task="Pendulum-P")).overlap


def test_what_a_camera_shows_is_drawn_in_a_process_of_its_own_unless_told() -> None:
    seen = RunConfig(task="cartpole-swingup-px", render_quality="fast")
    assert complete(seen).env_workers is True
    assert complete(replace(seen, env_workers=False)).env_workers is False
    assert complete(RunConfig(task="Pendulum-px")).env_workers is False
    assert complete(RunConfig(task="Pendulum-P")).env_workers is False


def test_configurations_of_before_frames_keep_their_hash() -> None:
    """Or every result of vectors would count as missing."""
    new = {"camera", "render_quality", "overlap"}
    saved = {k: v for k, v in to_json(complete(RunConfig(task="Pendulum-P"))).items() if k not in new}
    assert config_hash(from_json(saved)) == config_hash(complete(RunConfig(task="Pendulum-P")))
