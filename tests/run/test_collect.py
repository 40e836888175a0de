"""Collected datasets: what is in them, where it is from, and which moment of a run is half way."""

import json
from pathlib import Path

import numpy as np
import pytest

from mulv.core.errors import MulvError
from mulv.data import Replay
from mulv.data.episodes import read_episodes
from mulv.run.offline.collect import CollectConfig, collect
from mulv.run.offline.milestones import find_half_way, last_milestone, rows_until
from mulv.run.train import train
from tests.run.support import tiny


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """600 steps of a pendulum, a checkpoint at each episode's end; what it learned is of no account."""
    path = tmp_path_factory.mktemp("collect") / "run"
    config = tiny(total_steps=600, learning_starts=590, eval_every=200, eval_episodes=1, keep_checkpoints=9)
    train(config, path, progress=False)
    return path


def rewrite_history(run: Path, means: dict[int, float]) -> None:
    """A run whose evaluations were these."""
    lines = [
        {"env_steps": step, "agent_steps": step, "updates": 0, "returns": [mean - 1, mean + 1]}
        for step, mean in means.items()
    ]
    (run / "evaluations.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


def save_empty_checkpoints(run: Path, *steps: int) -> None:
    for step in steps:
        (run / "checkpoints" / f"{step:010d}").mkdir(parents=True)


def test_half_way_is_between_chance_and_the_end(tmp_path: Path) -> None:
    rewrite_history(tmp_path, {100: -1000.0, 200: -900.0, 300: -640.0, 400: -300.0, 500: -200.0})
    save_empty_checkpoints(tmp_path, 110, 290, 510)
    found = find_half_way(tmp_path, random=-1200.0, saved_only=True)  # half way is -700
    assert (found.clock, found.evaluated, found.final) == (290, -640.0, -200.0)
    assert find_half_way(tmp_path, random=-1200.0, saved_only=False).clock == 300  # the first that reached it
    assert find_half_way(tmp_path, random=-2000.0, saved_only=False).clock == 100
    assert last_milestone(tmp_path).clock == 510


def test_a_run_without_a_checkpoint_near_half_way_says_how_to_get_one(tmp_path: Path) -> None:
    rewrite_history(tmp_path, {100: -1000.0, 500: -200.0})
    save_empty_checkpoints(tmp_path, 500)
    with pytest.raises(MulvError, match=r"near half way, which is -700.0: .* --keep-checkpoints 20"):
        find_half_way(tmp_path, random=-1200.0, saved_only=True)


def test_a_run_that_learned_nothing_has_no_half_way(tmp_path: Path) -> None:
    rewrite_history(tmp_path, {100: -1000.0, 500: -1300.0})
    with pytest.raises(MulvError, match="it learned nothing"):
        find_half_way(tmp_path, random=-1200.0, saved_only=False)


def test_a_run_that_was_never_evaluated_or_saved_is_named(tmp_path: Path) -> None:
    with pytest.raises(MulvError, match="never evaluated"):
        find_half_way(tmp_path, random=0.0, saved_only=False)
    with pytest.raises(MulvError, match="no checkpoint"):
        last_milestone(tmp_path)


def test_random_data_is_whole_seeded_and_says_where_it_is_from(tmp_path: Path) -> None:
    one, again, other = (
        collect(CollectConfig("random", tmp_path / name, 500, "Pendulum-P", seed=seed, progress=False))
        for name, seed in (("one", 0), ("again", 0), ("other", 1))
    )
    assert one.sha256 == again.sha256 != other.sha256
    assert one.steps == 500
    saved = json.loads((tmp_path / "one" / "collected.json").read_text())
    assert (saved["kind"], saved["task"], saved["seed"]) == ("random", "Pendulum-P", 0)
    assert {"commit", "versions", "returns", "sha256"} <= saved.keys()
    actions = np.concatenate([e.actions for e in read_episodes(Replay.open(tmp_path / "one" / "replay"))])
    assert abs(actions.mean()) < 0.1
    assert actions.std() == pytest.approx(3**-0.5, rel=0.1)  # uniform on [-1, 1]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["again", "one", "other"]


def test_expert_data_is_of_the_newest_checkpoint(run: Path, tmp_path: Path) -> None:
    found = collect(CollectConfig("expert", tmp_path / "expert", 120, from_=run, progress=False))
    saved = json.loads((tmp_path / "expert" / "collected.json").read_text())
    assert found.steps == 120
    assert (saved["origin"]["clock"], saved["origin"]["run"]) == (600, str(run))
    assert saved["origin"]["config"]["agent"]["window"] == 2
    again = collect(CollectConfig("expert", tmp_path / "again", 120, from_=run, progress=False))
    assert again.sha256 == found.sha256


def test_medium_replay_is_what_the_run_saw_until_half_way(run: Path, tmp_path: Path) -> None:
    rewrite_history(run, {200: -5000.0, 400: -400.0, 600: 0.0})  # half way from chance, near -1200, is -600
    collect(CollectConfig("medium-replay", tmp_path / "all", from_=run, progress=False))
    own, got = (list(read_episodes(Replay.open(p / "replay"))) for p in (run, tmp_path / "all"))
    assert [len(e.rewards) for e in got] == [200, 200]
    for mine, its in zip(got, own[:2], strict=True):
        assert all(np.array_equal(a, b) for a, b in zip(mine, its, strict=True))
    found = collect(CollectConfig("medium-replay", tmp_path / "part", 250, from_=run, progress=False))
    assert found.lengths == (200,)
    (newest,) = read_episodes(Replay.open(tmp_path / "part" / "replay"))
    np.testing.assert_array_equal(newest.obs, own[1].obs)


def test_rows_until_counts_decisions_and_not_resets(run: Path) -> None:
    replay = Replay.open(run / "replay", mode="r")
    rewrite_history(run, {200: -5000.0, 400: -400.0, 600: 0.0})
    middle = find_half_way(run, random=-1200.0, saved_only=False)
    (rows,) = rows_until(replay, middle)
    steps = replay.column("step", 0, np.arange(rows))
    assert (steps > 0).sum() == 400
    assert (replay.column("step", 0, np.arange(rows, rows + 2)) > 0).any()


def test_a_failed_collection_leaves_nothing(run: Path, tmp_path: Path) -> None:
    with pytest.raises(MulvError, match=r"is of Pendulum-P, not of Hopper-P"):
        collect(CollectConfig("expert", tmp_path / "data", 50, "Hopper-P", from_=run, progress=False))
    newest = run / "checkpoints" / "0000000600" / "arrays.npz"
    content = newest.read_bytes()
    newest.write_bytes(b"broken")
    with pytest.raises(MulvError, match="damaged"):
        collect(CollectConfig("expert", tmp_path / "data", 50, from_=run, progress=False))
    newest.write_bytes(content)
    assert list(tmp_path.iterdir()) == []
