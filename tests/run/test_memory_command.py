"""`mulv memory` as a person meets it."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from mulv import cli
from mulv.run.train import train
from tests.run.support import small_regressions, tiny

QUICK = ["--decisions", "1000", "--updates", "50", "--windows", "1", "2", "--no-progress"]


@pytest.fixture(autouse=True, scope="module")
def small() -> Iterator[None]:
    with small_regressions():
        yield


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as exit_:
        cli.main(["memory", *arguments])
    printed = capsys.readouterr()
    return int(exit_.value.code or 0), printed.out, printed.err


def test_it_prints_a_table_and_writes_figures_and_a_picture(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, error = said(capsys, "--task", "Pendulum-P", *QUICK, "--out", str(tmp_path / "new"), "--json")
    assert code == 0, error
    lines = out.splitlines()
    figures = json.loads(lines[-1])
    assert figures == json.loads((tmp_path / "new/memory.json").read_text())
    assert [*figures["windows"]] == ["1", "2"]
    assert figures["windows"]["2"]["mean"]["r2"] > figures["windows"]["1"]["mean"]["r2"]
    assert figures["gru"] is not None
    assert figures["config"]["seed"] == 0
    assert figures["hidden"] == ["hidden 0"]
    assert {"commit", "versions", "recommendation"} <= figures.keys()
    header = next(i for i, line in enumerate(lines) if line.split()[:1] == ["L"])
    assert [line.split()[0] for line in lines[header + 1 : header + 4]] == ["1", "2", "GRU"]
    assert any(line.startswith("recommended: ") for line in lines)
    assert (tmp_path / "new/memory.png").read_bytes().startswith(b"\x89PNG")


def test_a_runs_policy_acts_and_one_of_another_task_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run"
    train(tiny(total_steps=200, eval_every=0), run, progress=False)
    code, out, error = said(
        capsys,
        "--task",
        "Pendulum-P",
        "--policy",
        str(run),
        *QUICK,
        "--no-gru",
        "--out",
        str(tmp_path),
        "--json",
    )
    assert code == 0, error
    figures = json.loads(out.splitlines()[-1])
    assert figures["config"]["policy"]["env_steps"] == 200
    assert figures["gru"] is None
    code, _, error = said(capsys, "--task", "Hopper-P", "--policy", str(run), *QUICK)
    assert code == 1
    assert error == f"mulv: error: {run} is of Pendulum-P, not of Hopper-P\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--task", "HalfCheetah-F"], "HalfCheetah-F hides nothing"),
        (["--task", "Pendulum-v1"], "say what is seen with --keep"),
        (["--task", "Pendulum-px"], "Pendulum-px shows frames"),
        (["--task", "HalfCheeta-P"], "did you mean 'HalfCheetah-P'?"),
        (["--task", "Pendulum-P", "--decisions", "10"], "10 decisions are too few"),
        (["--task", "Pendulum-P", "--windows", "0"], "must be at least 1"),
        (["--task", "Pendulum-P", "--policy", "nowhere"], "nowhere is not a run directory"),
    ],
)
def test_what_cannot_be_measured_is_one_line(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, error = said(capsys, *arguments, "--no-progress")
    assert code == 1
    assert error.startswith("mulv: error: ")
    assert message in error
    assert error.count("\n") == 1
