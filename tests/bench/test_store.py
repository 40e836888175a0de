"""The store: whole lines or none, whoever writes and whatever breaks."""

import contextlib
import json
import multiprocessing
from pathlib import Path

import numpy as np
import pytest

import mulv.bench
from mulv.bench.store import append, read_store
from mulv.core.errors import MulvError

RESULTS = Path(__file__).parents[2] / "results"


def line(seed: int, method: str = "sac/small", **more: object) -> dict[str, object]:
    return {
        "suite": "tiny",
        "method": method,
        "task": "Pendulum-P",
        "seed": seed,
        "env_steps": 400,
        "updates": 300,
        "eval_env_steps": [200, 400],
        "eval_returns": [[-2.0, -4.0], [-1.0, 0.0]],
        "eval_success": None,
        "final_mean": -0.5,
        "config": {"seed": seed},
        "config_hash": f"{seed:012d}",
        "commit": "abc",
        "versions": {},
        "wall_s": 1.5,
        **more,
    }


def test_what_was_appended_is_read(tmp_path: Path) -> None:
    for seed in (1, 0):
        assert append(tmp_path, line(seed))
    assert read_store(tmp_path) == [line(1), line(0)]
    assert [path.name for path in (tmp_path / "tiny").iterdir()] == ["sac-small.jsonl"]


def test_a_run_is_there_once(tmp_path: Path) -> None:
    assert append(tmp_path, line(0))
    assert not append(tmp_path, line(0, wall_s=9.0))
    assert read_store(tmp_path) == [line(0)]
    assert append(tmp_path, line(0, code="another"))


def test_a_damaged_line_is_named(tmp_path: Path) -> None:
    file = tmp_path / "tiny" / "sac.jsonl"
    file.parent.mkdir()
    file.write_text(f"{json.dumps(line(0))}\n{{broken\n{json.dumps(line(1))}\n")
    with pytest.raises(MulvError, match=r"sac\.jsonl:2 is damaged"):
        read_store(tmp_path)
    file.write_text(f'{json.dumps(line(0))}\n{{"method": "sac"}}\n')
    with pytest.raises(MulvError, match=r"sac\.jsonl:2 is not a result line: suite is missing"):
        read_store(tmp_path)


@pytest.mark.parametrize("cut", [1, 40, 200])
def test_half_a_last_line_is_no_run_and_the_next_append_drops_it(
    tmp_path: Path, cut: int, capsys: pytest.CaptureFixture[str]
) -> None:
    append(tmp_path, line(0))
    (file,) = tmp_path.glob("*/*.jsonl")
    with file.open("ab") as opened:
        opened.write(json.dumps(line(1)).encode()[:cut])
    assert read_store(tmp_path) == [line(0)]
    assert append(tmp_path, line(1))
    assert "ended in half a line" in capsys.readouterr().err
    assert read_store(tmp_path) == [line(0), line(1)]


def test_a_last_line_without_its_end_stays(tmp_path: Path) -> None:
    append(tmp_path, line(0))
    (file,) = tmp_path.glob("*/*.jsonl")
    file.write_bytes(file.read_bytes().rstrip(b"\n"))
    assert append(tmp_path, line(1))
    assert read_store(tmp_path) == [line(0), line(1)]


def _append_many(directory: Path, seeds: range) -> None:
    for seed in seeds:
        append(directory, line(seed, padding="x" * 20_000))


def test_two_processes_append_whole_lines(tmp_path: Path) -> None:
    spawn = multiprocessing.get_context("spawn")
    ranges = (range(40), range(20, 60))  # some of them are the same runs
    writers = [spawn.Process(target=_append_many, args=(tmp_path, seeds)) for seeds in ranges]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(timeout=120)
    assert [writer.exitcode for writer in writers] == [0, 0]
    assert sorted(result["seed"] for result in read_store(tmp_path)) == list(range(60))


def test_a_full_disk_leaves_the_store_as_it_was(small_disk: Path) -> None:
    append(small_disk, line(0))
    with contextlib.suppress(OSError), (small_disk / "ballast").open("wb", buffering=0) as ballast:
        while True:
            ballast.write(bytes(512))
    with pytest.raises(MulvError, match="disk is full"):
        append(small_disk, line(1, padding="x" * 20_000))
    assert read_store(small_disk) == [line(0)]
    (small_disk / "ballast").unlink()
    assert append(small_disk, line(1))
    assert read_store(small_disk) == [line(0), line(1)]


def test_the_frame_has_a_row_per_evaluation(tmp_path: Path) -> None:
    append(tmp_path, line(3))
    append(tmp_path, line(4, eval_success=[[True, False], [True, True]]))
    frame = mulv.bench.load(tmp_path)
    assert list(frame["seed"]) == [3, 3, 4, 4]
    assert list(frame["env_steps"]) == [200, 400, 200, 400]
    assert list(frame["return_mean"]) == [-3.0, -0.5, -3.0, -0.5]
    assert list(frame["final"]) == [False, True, False, True]
    assert np.isnan(frame["success"][0])
    assert list(frame["success"][2:]) == [0.5, 1.0]
    assert set(frame["suite"]) == {"tiny"}
    assert frame.query("final")["return_mean"].mean() == -0.5


def test_an_empty_store_has_the_same_columns(tmp_path: Path) -> None:
    empty = list(mulv.bench.load(tmp_path).columns)
    append(tmp_path, line(0))
    assert empty == list(mulv.bench.load(tmp_path).columns)


def test_a_directory_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(MulvError, match="no such directory"):
        read_store(tmp_path / "absent")


def test_the_repositorys_results_are_a_store() -> None:
    frame = mulv.bench.load(RESULTS)
    memory = frame[(frame["suite"] == "pendulum-memory") & frame["final"]]
    by_method = memory.groupby("method")["return_mean"].mean()
    assert by_method["sac"] > -250 > by_method["sac/window-1"]
    assert "random" not in set(frame["method"])  # a reference, not a run
