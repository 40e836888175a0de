"""A branch starts where another run was, with other options, and leaves that run alone."""

import hashlib
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from mulv.core.errors import MulvError
from mulv.run.branch import branch
from mulv.run.directory import RunDirectory
from mulv.run.train import complete, train
from tests.run.support import TINY_AGENT, finish, tiny

CONFIG = complete(tiny(total_steps=600, keep_checkpoints=5))


def files(run: Path) -> dict[str, str]:
    """What a run directory holds, but for its lock."""
    return {
        str(path.relative_to(run)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(run.rglob("*"))
        if path.is_file() and path.name != "lock"
    }


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return train(CONFIG, tmp_path_factory.mktemp("source") / "run", progress=False).directory


def returns(run: Path) -> list[list[float]]:
    return [json.loads(line)["returns"] for line in (run / "evaluations.jsonl").read_text().splitlines()]


def test_a_branch_without_changes_is_the_run_again(source: Path, tmp_path: Path) -> None:
    before = files(source)
    origin = branch(source, CONFIG, tmp_path / "run", at=400)
    assert (origin.step, origin.replay) == (400, True)
    outcome = train(CONFIG, tmp_path / "run", resume=True, progress=False)
    assert returns(tmp_path / "run") == returns(source)
    one, two = (
        np.load(run / "checkpoints" / "0000000600" / "arrays.npz") for run in (source, tmp_path / "run")
    )
    for name in one.files:
        np.testing.assert_array_equal(one[name], two[name])
    assert outcome.result["branched_from"] == {"run": str(source), "step": 400, "replay": True}
    assert files(source) == before


def test_a_branch_with_other_options_shares_its_past_and_not_its_future(source: Path, tmp_path: Path) -> None:
    changed = replace(CONFIG, agent=replace(TINY_AGENT, learning_rate=0.01), total_steps=800)
    branch(source, changed, tmp_path / "run", at=400)
    outcome = train(changed, tmp_path / "run", resume=True, progress=False)
    assert returns(tmp_path / "run")[0] == returns(source)[0]
    assert returns(tmp_path / "run")[1:] != returns(source)[1:]
    assert (outcome.counters.env_steps, outcome.result["config"]["agent"]["learning_rate"]) == (800, 0.01)


@pytest.mark.parametrize(
    ("changes", "at", "message"),
    [
        ({"total_steps": 600}, None, "say with --total-steps"),
        ({}, 300, r"no checkpoint at step 300; there are: 200, 400, 600"),
        ({"task": "Pendulum-F"}, 400, "task is Pendulum-P in"),
        ({"num_envs": 2}, 400, "num_envs is 1 in"),
    ],
)
def test_what_cannot_be_branched_is_said_before_anything_is_written(
    source: Path, tmp_path: Path, changes: dict, at: int | None, message: str
) -> None:
    with pytest.raises(MulvError, match=message):
        branch(source, replace(CONFIG, **changes), tmp_path / "run", at=at)
    assert not (tmp_path / "run").exists()


def test_the_command_branches(source: Path, tmp_path: Path) -> None:
    done = finish(
        "train", "--branch", source, "--at", "400", "--total-steps", "600", "--gamma", "0.9",
        "--no-progress", "--out", tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (run,) = tmp_path.glob("*/*/*")
    config = RunDirectory(run).read_config()
    assert (config.agent.gamma, config.agent.window) == (0.9, TINY_AGENT.window)
    assert "at step 400" in done.stdout
    both = finish("train", "--branch", source, "--resume", source)
    assert (both.returncode, both.stderr.count("\n")) == (1, 1)
