"""A sweep of which anything was killed equals one that ran undisturbed, bit for bit, each run once."""

import signal
from pathlib import Path
from typing import Any

import psutil
import pytest

from mulv.api import load
from tests.bench.sweeps import (
    SAC,
    failures,
    outcomes,
    runs_of,
    start_bench,
    wait_until,
    write_suite,
)
from tests.bench.test_bench import run_cli
from tests.run.support import fill, finish, kill

CHECKPOINT = "tiny/runs/*/*/*/checkpoints/0000000200"


@pytest.fixture(scope="module")
def serial(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The store after an undisturbed sweep, one run after the other."""
    root = tmp_path_factory.mktemp("serial")
    done = finish("bench", write_suite(root), "--out", root / "store", "--workers", "1")
    assert done.returncode == 0, done.stderr
    assert len(outcomes(root / "store")) == 4
    return root / "store"


def of_sac(store: Path) -> dict[tuple[str, str, int], tuple[Any, ...]]:
    """The outcomes of one method of the two."""
    return {run: found for run, found in outcomes(store).items() if run[0] == "sac"}


def test_finished_runs_are_not_run_again(
    serial: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = {path: path.read_bytes() for path in serial.glob("*/*.jsonl")}
    assert run_cli(write_suite(tmp_path), "--out", serial) == 0
    assert "4 finished, 0 to do" in capsys.readouterr().out
    assert {path: path.read_bytes() for path in serial.glob("*/*.jsonl")} == before


def test_a_finished_run_keeps_its_agent_and_not_its_replay(serial: Path) -> None:
    runs = list(serial.glob("tiny/runs/*/*/*"))
    assert len(runs) == 4
    assert not list(serial.glob("tiny/runs/*/*/*/replay"))
    assert len(load(runs[0]).evaluate(episodes=2).returns) == 2


@pytest.mark.slow
def test_kill_minus_nine_of_a_run_changes_nothing(serial: Path, tmp_path: Path) -> None:
    store = tmp_path / "store"
    sweep = start_bench(write_suite(tmp_path), store, "--workers", "2")
    wait_until(lambda: list(store.glob(CHECKPOINT)), sweep)
    runs_of(sweep)[0].kill()
    _, said = sweep.communicate(timeout=180)
    assert sweep.returncode == 0, said
    assert [failure["attempt"] for failure in failures(store)] == [1]
    assert "killed by SIGKILL" in failures(store)[0]["error"]
    assert outcomes(store) == outcomes(serial)


def test_kill_minus_nine_of_the_sweep_changes_nothing(serial: Path, tmp_path: Path) -> None:
    suite, store = write_suite(tmp_path, methods={"sac": SAC}), tmp_path / "store"
    sweep = start_bench(suite, store, "--workers", "1")
    wait_until(lambda: list(store.glob(CHECKPOINT)), sweep)
    runs = runs_of(sweep)
    assert runs
    kill(sweep)
    _, alive = psutil.wait_procs(runs, timeout=20)
    assert not alive
    resumed = finish("bench", suite, "--out", store, "--workers", "2")
    assert resumed.returncode == 0, resumed.stderr
    assert ", from 200 on" in resumed.stderr or ", from 400 on" in resumed.stderr
    assert outcomes(store) == of_sac(serial)


@pytest.mark.slow  # of a single run it is in tests/run/test_command.py
@pytest.mark.parametrize(("signum", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_every_run_and_says_how_to_go_on(
    serial: Path, tmp_path: Path, signum: int, code: int
) -> None:
    suite, store = write_suite(tmp_path, seeds=1), tmp_path / "store"
    sweep = start_bench(suite, store, "--workers", "2")
    wait_until(lambda: list(store.glob(CHECKPOINT)), sweep)
    runs = runs_of(sweep)
    sweep.send_signal(signum)
    _, said = sweep.communicate(timeout=30)
    assert sweep.returncode == code
    assert f"mulv bench {suite} --out {store} --workers 2" in said
    assert not any(run.is_running() for run in runs)
    assert finish("bench", suite, "--out", store).returncode == 0
    expected = {key: value for key, value in outcomes(serial).items() if key[2] == 0}
    assert outcomes(store) == expected


def test_a_run_that_always_fails_is_recorded_and_the_others_complete(tmp_path: Path) -> None:
    broken = {"algo": "sac", "options": {"learning_rate": 1e30}}
    suite = write_suite(tmp_path, methods={"sac/broken": broken, "sac": SAC}, seeds=1)
    done = finish("bench", suite, "--out", tmp_path, "--workers", "1", "--retries", "1")
    assert done.returncode == 1
    assert list(outcomes(tmp_path)) == [("sac", "Pendulum-P", 0)]
    assert [(f["method"], f["attempt"]) for f in failures(tmp_path)] == [("sac/broken", 1), ("sac/broken", 2)]
    assert all("NaN or inf" in f["error"] and "Traceback" in f["traceback"] for f in failures(tmp_path))
    assert str(tmp_path / "tiny" / "runs" / "failures.jsonl") in done.stderr


def test_two_sweeps_into_one_store_run_everything_once(serial: Path, tmp_path: Path) -> None:
    suite, store = write_suite(tmp_path), tmp_path / "store"
    sweeps = [start_bench(suite, store, "--workers", "1") for _ in range(2)]
    said = [sweep.communicate(timeout=240)[1] for sweep in sweeps]
    assert [sweep.returncode for sweep in sweeps] == [0, 0], said
    assert finish("bench", suite, "--out", store).returncode == 0
    assert outcomes(store) == outcomes(serial)


@pytest.mark.slow  # of a single run it is in tests/run/test_command.py
def test_a_full_disk_fails_the_runs_and_they_go_on_once_there_is_space(
    serial: Path, small_disk: Path, tmp_path: Path
) -> None:
    suite = write_suite(tmp_path, methods={"sac": SAC})
    sweep = start_bench(suite, small_disk, "--workers", "1", "--retries", "0")
    wait_until(lambda: list(small_disk.glob(CHECKPOINT)), sweep)
    ballast = fill(small_disk)
    _, said = sweep.communicate(timeout=120)
    assert sweep.returncode == 1
    assert "disk" in said
    ballast.unlink()
    again = finish("bench", suite, "--out", small_disk, "--workers", "1")
    assert again.returncode == 0, again.stderr
    assert outcomes(small_disk) == of_sac(serial)
