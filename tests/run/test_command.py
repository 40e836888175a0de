"""The command line, as a person and as an operating system meet it."""

import shutil
import signal
import subprocess
from pathlib import Path

import psutil
import pytest

from mulv import cli
from mulv.api import Learner
from mulv.envs import TASKS
from mulv.run.evaluation import Evaluation
from tests.run.support import TINY_FLAGS, fill, finish, kill, start, wait_for

LONG = ["--total-steps", "1000000", *TINY_FLAGS]


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[subprocess.CompletedProcess[str], Path]:
    root = tmp_path_factory.mktemp("command")
    done = finish("train", "--total-steps", "600", *TINY_FLAGS, "--out", root)
    return done, root / "Pendulum-P" / "sac" / "seed-0"


def test_training_ends_with_the_evaluation_the_directory_and_the_curve(
    finished: tuple[subprocess.CompletedProcess[str], Path],
) -> None:
    done, run = finished
    assert done.returncode == 0, done.stderr
    assert str(run) in done.stdout
    assert "evaluation -" in done.stdout
    assert "MB reserved" in done.stdout
    assert (run / "learning_curve.png").read_bytes().startswith(b"\x89PNG")


def test_eval_prints_every_episode_and_is_repeatable(
    finished: tuple[subprocess.CompletedProcess[str], Path],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def said(*more: str) -> str:
        with pytest.raises(SystemExit) as exit_:
            cli.main(["eval", str(finished[1]), "--episodes", "3", *more])
        assert exit_.value.code == 0
        return capsys.readouterr().out

    first = said()
    assert first.count("return") == 3
    assert first.splitlines()[-1].startswith("mean ")
    assert said() == first
    assert said("--seed", "1") != first

    successes = Evaluation([1.0, 2.0], [3, 4], [True, False])
    monkeypatch.setattr(Learner, "evaluate", lambda *_, **__: successes)
    assert said().splitlines()[-1] == "success in 1 of 2 episodes"


@pytest.mark.parametrize(("signum", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_signals_save_and_exit(tmp_path: Path, signum: int, code: int) -> None:
    process = start("train", *LONG, "--out", tmp_path)
    run = tmp_path / "Pendulum-P" / "sac" / "seed-0"
    wait_for("checkpoints/0000000200", run, process)
    process.send_signal(signum)
    _, error = process.communicate(timeout=30)
    assert process.returncode == code
    assert f"mulv train --resume {run}" in error
    newest = max(int(p.name) for p in (run / "checkpoints").iterdir())
    shutil.rmtree(run / "checkpoints" / f"{newest - newest % 200:010d}", ignore_errors=True)
    resumed = start("train", "--resume", run, "--no-progress")
    try:
        newer = wait_for("checkpoints/*", run, resumed, but=f"{newest:010d}")
        assert int(newer.name) > newest
    finally:
        kill(resumed)


def test_a_second_process_on_one_run_is_refused(tmp_path: Path) -> None:
    process = start("train", *LONG, "--out", tmp_path)
    run = tmp_path / "Pendulum-P" / "sac" / "seed-0"
    wait_for("checkpoints/0000000200", run, process)
    second = finish("train", "--resume", run, "--no-progress")
    assert second.returncode == 1
    assert f"in use by another process (pid {process.pid})" in second.stderr
    assert process.poll() is None  # the first goes on
    kill(process)


def test_no_worker_outlives_a_killed_run(tmp_path: Path) -> None:
    process = start("train", *LONG, "--out", tmp_path, "--env-workers", "True", "--num-envs", "2")
    wait_for("checkpoints/*", tmp_path / "Pendulum-P" / "sac" / "seed-0", process)
    children = psutil.Process(process.pid).children(recursive=True)
    assert len(children) >= 2
    kill(process)
    _, alive = psutil.wait_procs(children, timeout=20)
    assert not alive


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["tran"], "no command is called 'tran'; did you mean 'train'?"),
        (
            ["train", "--task", "HalfChetah-P"],
            "no task is called 'HalfChetah-P'; did you mean 'HalfCheetah-P'?",
        ),
        (["train", "--algo", "sak"], "no algorithm is called 'sak'; did you mean 'sac'?"),
        (["train", "--preset", "papper"], "no preset of mulv is called 'papper'; did you mean 'paper'?"),
        (["train", "--resume", "nowhere"], "nowhere is not a run directory: it has no config.json"),
        (["train", "--window", "0"], "window is 0; it must be at least 1"),
        (["train", "--algo", "sac", "--task", "CartPole-v1"], "SAC-MLP needs continuous actions"),
        (
            ["train", "--task", "Swimmer-v5", "--keep", "0-99"],
            "position 99, but the observation has 8 entries",
        ),
        (["train", "--task", "Pendulum-P", "--keep", "0"], "Pendulum-P says itself what is kept"),
        (["train", "--task", "metaworld/reach-v3"], "did you mean 'metaworld/reach-px'"),
        (["train", "--task", "Pendulum-px", "--algo", "sac"], "SAC-MLP learns from vectors, and this task"),
        (["train", "--task", "Pendulum-px", "--camera", "side"], "Pendulum-px is drawn without cameras"),
        (["compare", "nowhere"], "nowhere holds no finished run"),
        (["eval", "nowhere"], "nowhere is not a run directory: it has no config.json"),
    ],
)
def test_bad_input_gets_one_clear_line(
    arguments: list[str],
    line: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as exit_:
        cli.main(arguments)
    assert exit_.value.code == 1
    error = capsys.readouterr().err
    assert error.startswith("mulv: error: ")
    assert line in error
    assert error.count("\n") == 1
    assert not list(tmp_path.glob("runs/**/replay"))


def test_an_unknown_option_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_:
        cli.main(["train", "--windoww", "3"])
    assert exit_.value.code == 2
    assert "--windoww" in capsys.readouterr().err


def test_envs_lists_every_task(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_:
        cli.main(["envs"])
    assert exit_.value.code == 0
    listed = {line.split()[0] for line in capsys.readouterr().out.splitlines() if line}
    assert set(TASKS) <= listed


def test_a_disk_that_fills_up_ends_the_run_and_it_resumes_once_there_is_space(
    small_disk: Path,
) -> None:
    process = start("train", *TINY_FLAGS, "--total-steps", "3000", "--out", small_disk)
    run = small_disk / "Pendulum-P" / "sac" / "seed-0"
    wait_for("checkpoints/0000000200", run, process)
    ballast = fill(small_disk)
    _, error = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "mulv: error: the disk is full" in error
    ballast.unlink()
    resumed = finish("train", "--resume", run, "--no-progress")
    assert resumed.returncode == 0, resumed.stderr
    assert (run / "checkpoints" / "0000003000").is_dir()
