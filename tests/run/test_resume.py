"""A run that was killed and resumed equals one that was not, bit for bit."""

import shutil
import time
from pathlib import Path

import numpy as np
import pytest

from mulv.core.errors import MulvError
from mulv.run import checkpoint
from mulv.run.train import train
from tests.run.support import TINY_FLAGS, fingerprint, finish, kill, start, tiny, wait_for


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """1000 steps without interruption, with all its checkpoints; tests work on copies of it."""
    path = tmp_path_factory.mktemp("whole") / "run"
    train(tiny(keep_checkpoints=5), path, progress=False)
    return path


def cut_at_600(run: Path) -> None:
    """As after a crash: what came later is still in the files, but for its checkpoints."""
    for step in (800, 1000):
        shutil.rmtree(run / "checkpoints" / f"{step:010d}")


def test_one_seed_gives_one_run(whole: Path, tmp_path: Path) -> None:
    train(tiny(), tmp_path / "run", progress=False)
    assert fingerprint(tmp_path / "run") == fingerprint(whole)


def test_another_seed_gives_another_run(whole: Path, tmp_path: Path) -> None:
    train(tiny(seed=1), tmp_path / "run", progress=False)
    other, this = fingerprint(tmp_path / "run"), fingerprint(whole)
    assert all(other[key] != this[key] for key in ("parameters", "replay", "metrics", "evaluations"))


def test_n_steps_then_n_more_equal_2n(whole: Path, tmp_path: Path) -> None:
    path = shutil.copytree(whole, tmp_path / "run")
    cut_at_600(path)
    said: list[str] = []
    train(tiny(keep_checkpoints=5), path, progress=False, resume=True, say=said.append)
    assert any("0000000600" in line for line in said)
    assert not any("within an episode" in line for line in said)
    assert fingerprint(path) == fingerprint(whole)


def test_extending_a_finished_run_equals_a_longer_one(whole: Path, tmp_path: Path) -> None:
    for steps, resume in ((400, False), (1000, True)):
        train(tiny(total_steps=steps), tmp_path / "grown", progress=False, resume=resume)
    # The last episode end lies at step 400, so all that differs is how much room the replay reserved.
    assert fingerprint(tmp_path / "grown") == fingerprint(whole)


def test_resuming_within_an_episode_begins_another_and_says_so(tmp_path: Path) -> None:
    path, said = tmp_path / "run", []
    train(tiny(total_steps=450), path, progress=False)
    train(tiny(total_steps=1000), path, progress=False, resume=True, say=said.append)
    assert any("within an episode" in line for line in said)
    rows = 1000 + 6  # one row a step, and six resets instead of five
    steps = np.fromfile(path / "replay" / "step.bin", np.int32)[:rows]
    assert list(np.flatnonzero(steps == 0)) == [0, 201, 402, 453, 654, 855]
    truncated = np.fromfile(path / "replay" / "truncated.bin", bool)[:rows]
    assert list(np.flatnonzero(truncated)) == [200, 401, 452, 653, 854]


def test_the_ring_that_came_round_resumes_bit_for_bit(tmp_path: Path) -> None:
    """Rows that a checkpoint refers to survive although the run went on writing over the oldest ones."""
    config = tiny(replay_capacity=300, keep_checkpoints=3)
    train(config, tmp_path / "whole", progress=False)
    cut_at_600(shutil.copytree(tmp_path / "whole", tmp_path / "cut"))
    train(config, tmp_path / "cut", progress=False, resume=True)
    assert fingerprint(tmp_path / "cut") == fingerprint(tmp_path / "whole")


def test_another_config_is_refused_with_a_readable_difference(whole: Path) -> None:
    changed = tiny(replay_ratio=2.0, agent=tiny().agent.__class__(window=3, batch_size=8))
    with pytest.raises(MulvError) as error:
        train(changed, whole, progress=False, resume=True)
    assert "replay_ratio: 1.0 in the run, 2.0 now" in str(error.value)
    assert "agent.window: 2 in the run, 3 now" in str(error.value)
    assert "agent.trunk.width: 16 in the run, 256 now" in str(error.value)
    assert "batch_size" not in str(error.value)


def test_a_directory_that_holds_a_run_is_not_overwritten(whole: Path) -> None:
    before = fingerprint(whole)
    with pytest.raises(MulvError, match="already holds a run"):
        train(tiny(), whole, progress=False)
    assert fingerprint(whole) == before


def find_run(root: Path) -> Path:
    return root / "Pendulum-P" / "sac" / "seed-0"


def test_kill_minus_nine_at_random_moments_changes_nothing(whole: Path, tmp_path: Path) -> None:
    kill_and_resume(tmp_path, kills=2, seed=0)
    assert fingerprint(find_run(tmp_path)) == fingerprint(whole)


@pytest.mark.slow
def test_fifty_kills_change_nothing(whole: Path, tmp_path: Path) -> None:
    expected, kills = fingerprint(whole), 0
    for seed in range(13):
        root = tmp_path / str(seed)
        root.mkdir()
        kill_and_resume(root, kills=4, seed=seed)
        kills += 4
        assert fingerprint(find_run(root)) == expected
    assert kills >= 50


def kill_and_resume(root: Path, kills: int, seed: int) -> None:
    path = find_run(root)
    flags = ["--total-steps", "1000", *TINY_FLAGS, "--out", root]
    rng = np.random.default_rng(seed)
    process = start("train", *flags)
    wait_for("config.json", path, process)
    for number in range(kills):
        saved = checkpoint.saved_steps(path / "checkpoints")
        if number % 2 == 0:
            wait_for(f"{checkpoint.ASIDE}*", path / "checkpoints", process)
        else:
            time.sleep(float(rng.uniform(0.0, 5.0)))
        kill(process)
        after = checkpoint.saved_steps(path / "checkpoints")
        assert after[-1:] >= saved[-1:]  # what was saved stays saved
        if after[-1:] == [1000]:
            break
        process = start("train", "--resume", path, "--no-progress")
    out, error = process.communicate(timeout=180)
    assert checkpoint.saved_steps(path / "checkpoints")[-1] == 1000, (out, error)


def test_the_command_and_the_library_give_the_same_run(whole: Path, tmp_path: Path) -> None:
    done = finish("train", "--total-steps", "1000", *TINY_FLAGS, "--out", tmp_path)
    assert done.returncode == 0, done.stderr
    assert fingerprint(find_run(tmp_path)) == fingerprint(whole)
