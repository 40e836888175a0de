"""--vmap-seeds: jobs that differ in nothing but the seed share a process, and are told apart in all else."""

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

from mulv.bench.board import Board
from mulv.bench.pool import Event
from mulv.bench.process import Child, Message
from mulv.bench.store import read_store
from mulv.bench.suite import Job, read_suite
from mulv.bench.sweep import Tally, finished, grouped, run_sweep
from mulv.cli.bench import parse_bench
from mulv.run.interrupts import Interrupts
from mulv.run.train import train
from tests.bench.sweeps import SAC, failures, runs_of, start_bench, wait_until, write_suite
from tests.bench.test_bench import result_of, run_cli
from tests.run.support import finish, kill


@pytest.mark.parametrize(
    ("arguments", "most"), [([], 1), (["--vmap-seeds"], None), (["--vmap-seeds", "3"], 3)]
)
def test_the_option(arguments: list[str], most: int | None) -> None:
    assert parse_bench(["quick", *arguments]).vmap_seeds == most
    assert parse_bench([*arguments, "--out", "store", "quick"]).vmap_seeds == most


@pytest.mark.parametrize("given", [["0"], ["-1"], ["two"], ["2", "3"]])
def test_a_bad_number_is_refused(
    given: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_cli(write_suite(tmp_path), "--out", tmp_path / "store", "--vmap-seeds", *given) > 0
    assert "vmap-seeds" in capsys.readouterr().err
    assert not (tmp_path / "store").exists()


def test_groups_hold_each_job_once_and_differ_in_the_seed_alone(tmp_path: Path) -> None:
    jobs = read_suite(write_suite(tmp_path, seeds=5)).jobs()  # two methods
    assert grouped(jobs, 1) == [(job,) for job in jobs]
    for most in (2, 3, 5, 9):
        groups = grouped(jobs, most)
        assert sorted(map(str, (job for group in groups for job in group))) == sorted(map(str, jobs))
        assert all(len(group) <= most and len({job.method for job in group}) == 1 for group in groups)
        assert len(groups) == 2 * -(-5 // most)
        places = [jobs.index(group[0]) for group in groups]
        assert places == sorted(places)
    assert [str(job) for job in grouped(jobs[3:], 2)[0]] == [
        "sac/n-step-2 Pendulum-P seed 1",
        "sac/n-step-2 Pendulum-P seed 2",
    ]


class Scripted:
    """A pool in which the second job of a group fails, and every job alone succeeds."""

    slots = 1

    def __init__(self) -> None:
        self.started: list[tuple[Job, ...]] = []
        self._running: tuple[Job, ...] = ()

    def start(self, jobs: Any) -> None:
        self._running = tuple(jobs)
        self.started.append(self._running)

    def free(self) -> bool:
        return not self._running

    def events(self, seconds: float) -> list[Event]:
        jobs, self._running = self._running, ()
        failed = {"error": "NaN or inf in critic_loss", "traceback": "Traceback"}
        answers = [failed if number == 1 else {"result": result_of(job)} for number, job in enumerate(jobs)]
        return [
            Event(jobs[0], {"steps": 1, "from": 0, "return": None}),
            *map(Event, jobs, answers),
        ]

    def settled(self, message: Message) -> None: ...

    def close(self) -> None: ...


def swept(jobs: list[Job], store: Path, retries: int) -> tuple[Tally, list[tuple[Job, ...]]]:
    pool, board = Scripted(), Board(jobs, 0, 1, 2, stream=io.StringIO())
    tally = run_sweep(grouped(jobs, 2), store, pool, board, retries=retries, interrupts=Interrupts())
    return tally, pool.started


def test_a_failed_member_is_tried_again_alone(tmp_path: Path) -> None:
    first, second, third = jobs = read_suite(write_suite(tmp_path, methods={"sac": SAC}, seeds=3)).jobs()
    tally, started = swept(jobs, tmp_path / "retried", retries=1)
    assert started == [(first, second), (third,), (second,)]
    assert (tally.done, tally.failed) == (3, [])
    assert len(read_store(tmp_path / "retried")) == 3
    tally, started = swept(jobs, tmp_path / "once", retries=0)
    assert started == [(first, second), (third,)]
    assert (tally.done, tally.failed) == (2, [second])


def test_the_time_left_allows_for_runs_that_share_a_core(tmp_path: Path) -> None:
    jobs = read_suite(write_suite(tmp_path, methods={"sac": SAC}, seeds=4)).jobs()
    alone, together = (Board(jobs, 0, 1, number, stream=io.StringIO()) for number in (1, 2))
    assert together.seconds_left == pytest.approx(alone.seconds_left)
    assert Board(jobs, 0, 2, 1, stream=io.StringIO()).seconds_left == pytest.approx(alone.seconds_left / 2)


def test_every_run_of_a_process_that_dies_has_failed(tmp_path: Path) -> None:
    jobs = read_suite(write_suite(tmp_path, methods={"sac": SAC})).jobs()
    child = Child([job.to_json() for job in jobs], tmp_path, threads=1)
    psutil.Process(child.pid).kill()
    messages = []
    while not child.ended:
        messages += child.read()
    errors = [(number, message["error"]) for number, message in messages if "error" in message]
    assert [number for number, _ in errors] == [0, 1]
    assert all("killed by SIGKILL" in error for _, error in errors)


@pytest.mark.slow
def test_a_killed_sweep_of_groups_goes_on_and_finds_what_single_runs_find(tmp_path: Path) -> None:
    suite, store = write_suite(tmp_path, methods={"sac": SAC}, steps=400), tmp_path / "store"
    jobs = read_suite(suite).jobs()
    sweep = start_bench(suite, store, "--vmap-seeds", "--workers", "1")
    wait_until(lambda: len(list(store.glob("tiny/runs/*/*/*/checkpoints/0000000200"))) == 2, sweep)
    (process,) = runs_of(sweep)  # one for both seeds
    kill(sweep)
    psutil.wait_procs([process], timeout=20)
    resumed = finish("bench", suite, "--out", store, "--vmap-seeds", "--workers", "1")
    assert resumed.returncode == 0, resumed.stderr
    assert resumed.stderr.count("400 steps, from 200 on") == 2
    assert failures(store) == []
    assert set(finished(store, jobs)) == {job.key for job in jobs}
    lines = read_store(store)
    assert [line["vmap_seeds"] for line in lines] == [2, 2]
    assert len({line["state_sha256"] for line in lines}) == 2
    for line in lines:
        job = jobs[line["seed"]]
        train(job.config, tmp_path / str(line["seed"]), progress=False)
        alone = json.loads((tmp_path / str(line["seed"]) / "result.json").read_text())
        assert line["config_hash"] == alone["config_hash"]
        assert line["updates"] == alone["updates"] == 300
        np.testing.assert_allclose(line["eval_returns"], alone["eval_returns"], rtol=0.02)
