"""Runs side by side."""

import json

import pytest

from mulv.bench.compare import read_results, table
from mulv.core.errors import MulvError


def write(path, *, window: int, seed: int, final: float, task: str = "Pendulum-P"):
    path.mkdir()
    result = {
        "method": "mulv",
        "task": task,
        "seed": seed,
        "env_steps": 10_000,
        "eval_env_steps": [5_000, 10_000],
        "eval_returns": [[final - 5, final - 3], [final - 1, final + 1]],
        "final_mean": final,
        "wall_s": 90.0,
        "config": {"seed": seed, "task": task, "algo": "mulv", "agent": {"window": window}},
    }
    (path / "result.json").write_text(json.dumps(result))
    return path


def test_runs_are_named_by_what_differs_and_ranked(tmp_path):
    runs = [
        write(tmp_path / "a", window=1, seed=0, final=-900.0),
        write(tmp_path / "b", window=3, seed=1, final=-150.0),
    ]
    results = read_results(runs)
    assert [r["method"] for r in results] == ["mulv", "mulv/window 3"]
    lines = table(results)
    assert "mulv/window 3" in lines[1]
    assert "-150.0 ± 1.0" in lines[1]
    assert "-900.0 ± 1.0" in lines[2]
    assert len({len(line) for line in lines}) == 1


def test_an_unfinished_run_and_another_task_are_refused(tmp_path):
    one = write(tmp_path / "a", window=1, seed=0, final=0.0)
    with pytest.raises(MulvError, match="no finished run"):
        read_results([one, tmp_path / "nothing"])
    other = write(tmp_path / "b", window=1, seed=0, final=0.0, task="Hopper-P")
    with pytest.raises(MulvError, match="different tasks"):
        read_results([one, other])


def test_nothing_a_damaged_file_and_a_run_never_evaluated_are_refused(tmp_path):
    with pytest.raises(MulvError, match="nothing to compare"):
        read_results([])
    damaged = write(tmp_path / "a", window=1, seed=0, final=0.0)
    (damaged / "result.json").write_text("{")
    with pytest.raises(MulvError, match="damaged"):
        read_results([damaged])
    silent = write(tmp_path / "b", window=1, seed=0, final=0.0)
    result = json.loads((silent / "result.json").read_text()) | {"eval_returns": [], "final_mean": None}
    (silent / "result.json").write_text(json.dumps(result))
    with pytest.raises(MulvError, match="never evaluated"):
        read_results([silent])


def test_each_algorithm_is_compared_with_itself(tmp_path):
    """Two runs of a second algorithm that differ must not share a name: their curves have different steps."""
    runs = [write(tmp_path / str(i), window=w, seed=0, final=0.0) for i, w in enumerate((1, 1, 3))]
    for run in runs[1:]:
        result = json.loads((run / "result.json").read_text()) | {"method": "sac"}
        (run / "result.json").write_text(json.dumps(result))
    assert [r["method"] for r in read_results(runs)] == ["mulv", "sac", "sac/window 3"]
