"""Runs side by side."""

import json

import pytest

from mulv.bench.compare import read_results, table
from mulv.core.errors import MulvError
from tests.bench.support import result


def write(path, *, method: str = "mulv", window: int = 3, seed: int = 0, final: float = 0.0, **fields):
    config = {"seed": seed, "algo": method, "agent": {"window": window}}
    path.mkdir()
    line = result(method, seed=seed, final=final, evaluations=2, **{"config": config, **fields})
    (path / "result.json").write_text(json.dumps(line))
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
    one = write(tmp_path / "a")
    with pytest.raises(MulvError, match=r"nothing holds no finished run: there is no .*result\.json"):
        read_results([one, tmp_path / "nothing"])
    other = write(tmp_path / "b", task="Hopper-P")
    with pytest.raises(MulvError, match="different tasks"):
        read_results([one, other])


def test_nothing_a_damaged_file_and_a_run_never_evaluated_are_refused(tmp_path):
    with pytest.raises(MulvError, match="nothing to compare"):
        read_results([])
    damaged = write(tmp_path / "a")
    (damaged / "result.json").write_text("{")
    with pytest.raises(MulvError, match=r"result\.json is damaged"):
        read_results([damaged])
    crooked = write(tmp_path / "b", eval_returns=[[1.0]])
    with pytest.raises(MulvError, match=r"result\.json is not a result line: eval_returns has not one entry"):
        read_results([crooked])
    silent = write(tmp_path / "c", eval_env_steps=[], eval_returns=[], final_mean=None)
    with pytest.raises(MulvError, match="never evaluated"):
        read_results([silent])


def test_each_algorithm_is_compared_with_itself(tmp_path):
    """Two runs of a second algorithm that differ must not share a name: their curves have different steps."""
    kinds = (("mulv", 1), ("sac", 1), ("sac", 3))
    runs = [write(tmp_path / str(i), method=m, window=w) for i, (m, w) in enumerate(kinds)]
    assert [r["method"] for r in read_results(runs)] == ["mulv", "sac", "sac/window 3"]
