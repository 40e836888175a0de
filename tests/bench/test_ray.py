"""The same sweep on a real Ray cluster of several nodes, parts of which are killed while it runs."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from mulv.bench.store import read_store
from tests.bench.sweeps import failures, outcomes, processes_below, start_bench, wait_until, write_suite
from tests.run.support import ROOT, finish, kill

pytest.importorskip("ray")
CHECKPOINT = "mulv-runs-*/*/*/*/*/checkpoints/0000000200"


class Nodes:
    """A cluster in a process of its own (cluster.py)."""

    def __init__(self, root: Path):
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.bench.cluster", str(root)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env={**os.environ, "RAY_USAGE_STATS_ENABLED": "0"},
        )
        self.address = self._answer()

    def _answer(self) -> str:
        assert self._process.stdout is not None
        answer = self._process.stdout.readline().strip()
        assert answer
        return answer

    def ask(self, command: str) -> None:
        """`add NAME` or `remove NAME`."""
        assert self._process.stdin is not None
        print(command, file=self._process.stdin, flush=True)
        assert self._answer() == "done"

    def workers(self) -> list[psutil.Process]:
        """Processes of Ray that run a task of a sweep."""
        return processes_below(self._process.pid, "ray::run_on_node")

    def shutdown(self) -> None:
        self._process.communicate(timeout=60)


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[Nodes]:
    cluster = Nodes(tmp_path)
    yield cluster
    cluster.shutdown()


def serial(suite: Path, store: Path) -> dict[Any, Any]:
    done = finish("bench", suite, "--out", store, "--workers", "1", timeout=3600)
    assert done.returncode == 0, done.stderr
    return outcomes(store)


@pytest.mark.slow
def test_kill_minus_nine_of_a_ray_worker_changes_nothing(nodes: Nodes, tmp_path: Path) -> None:
    nodes.ask("add node-1")
    suite, store = write_suite(tmp_path, methods={"sac": {"algo": "sac"}}, seeds=1), tmp_path / "store"
    sweep = start_bench(suite, store, "--ray", nodes.address)
    wait_until(lambda: list((tmp_path / "node-1").glob(CHECKPOINT)), sweep)
    nodes.workers()[0].kill()
    _, said = sweep.communicate(timeout=300)
    assert sweep.returncode == 0, said
    assert [failure["attempt"] for failure in failures(store)] == [1]
    assert outcomes(store) == serial(suite, tmp_path / "serial")
    assert not list((tmp_path / "node-1").glob("mulv-runs-*/*"))  # nothing stays on the node


@pytest.mark.slow
def test_worker_node_and_driver_killed_in_a_sweep_of_twenty_runs(nodes: Nodes, tmp_path: Path) -> None:
    for name in ("node-1", "node-2", "node-3"):
        nodes.ask(f"add {name}")
    suite, store = write_suite(tmp_path, seeds=10, steps=1600), tmp_path / "store"
    sweep = start_bench(suite, store, "--ray", nodes.address)
    wait_until(lambda: list((tmp_path / "node-1").glob(CHECKPOINT)), sweep, timeout=1200)
    nodes.workers()[0].kill()
    wait_until(lambda: len(list(store.glob("*/*.jsonl"))) and len(outcomes(store)) >= 3, sweep, timeout=1200)
    wait_until(lambda: list((tmp_path / "node-2").glob(CHECKPOINT)), sweep, timeout=1200)
    nodes.ask("remove node-2")
    nodes.ask("add node-4")
    wait_until(lambda: len(outcomes(store)) >= 8, sweep, timeout=1200)
    workers = nodes.workers()
    kill(sweep)
    before = outcomes(store)
    assert len(before) < 20
    _, alive = psutil.wait_procs(workers, timeout=60)
    assert not alive  # a cluster ends the tasks of a driver that is gone
    resumed = finish("bench", suite, "--out", store, "--ray", nodes.address, timeout=3600)
    assert resumed.returncode == 0, resumed.stderr
    assert f"{len(before)} finished, {20 - len(before)} to do" in resumed.stdout
    assert len(failures(store)) >= 2  # the worker's run and the node's
    assert outcomes(store) == serial(suite, tmp_path / "serial")


@pytest.mark.slow
def test_auto_starts_a_cluster_where_there_is_none(tmp_path: Path) -> None:
    suite = write_suite(tmp_path, methods={"sac": {"algo": "sac"}})
    done = finish("bench", suite, "--out", tmp_path / "store", "--ray", "auto", timeout=1200)
    assert done.returncode == 0, done.stderr
    assert outcomes(tmp_path / "store") == serial(suite, tmp_path / "serial")


@pytest.mark.slow
def test_seeds_that_train_together_are_one_task(tmp_path: Path) -> None:
    suite, store = write_suite(tmp_path, methods={"sac": {"algo": "sac"}}), tmp_path / "store"
    done = finish("bench", suite, "--out", store, "--ray", "auto", "--vmap-seeds", timeout=1200)
    assert done.returncode == 0, done.stderr
    assert [line["vmap_seeds"] for line in read_store(store)] == [2, 2]
    here = finish("bench", suite, "--out", tmp_path / "here", "--vmap-seeds", timeout=1200)
    assert here.returncode == 0, here.stderr
    assert outcomes(store) == outcomes(tmp_path / "here")
