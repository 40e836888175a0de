"""Reading results back, and what is said of those that cannot be read."""

import json

import pytest

from mulv.bench.store import find_runs
from mulv.core.errors import MulvError
from tests.bench.support import result, write_store


def test_a_tree_of_suites_is_read_in_the_order_of_its_files(tmp_path):
    lines = [result("sac", seed=s) for s in (1, 0)] + [result("mulv", suite="another")]
    write_store(tmp_path, *lines)
    assert find_runs(tmp_path) == [lines[2], lines[0], lines[1]]


def test_run_directories_are_read_and_their_logs_are_not(tmp_path):
    run = tmp_path / "HalfCheetah-P" / "mulv" / "seed-0"
    run.mkdir(parents=True)
    (run / "result.json").write_text(json.dumps(result(), indent=1))
    (run / "metrics.jsonl").write_text('{"step": 1}\n')
    (run / "evaluations.jsonl").write_text('{"step": 1}\n')
    assert find_runs(tmp_path) == [result()]


def test_random_actions_and_speed_are_not_runs(tmp_path):
    write_store(tmp_path, result())
    for folder in ("random", "speed"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "x.jsonl").write_text('{"task": "T", "returns": [1.0]}\n')
    assert find_runs(tmp_path) == [result()]


def test_a_damaged_line_is_named_by_file_and_number(tmp_path):
    write_store(tmp_path, result(seed=0), result(seed=1))
    file = tmp_path / "trial" / "mulv.jsonl"
    file.write_text(file.read_text() + '{"suite": "tri\n')
    with pytest.raises(MulvError, match=r"mulv\.jsonl:3 is damaged") as caught:
        find_runs(tmp_path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"seed": "0"}, "seed is '0'"),
        ({"versions": None}, "versions is None"),
        ({"eval_env_steps": [1, 2, 2, 4]}, "eval_env_steps does not grow"),
        ({"eval_returns": [[1.0]]}, "eval_returns has not one entry for each"),
        ({"eval_returns": [[1.0], [2.0], [], [3.0]]}, "eval_returns holds something other"),
        ({"eval_returns": [[1.0], [2.0], [float("nan")], [3.0]]}, "eval_returns holds something other"),
        ({"eval_success": [[True]]}, "eval_success has not one entry for each"),
    ],
)
def test_a_line_that_is_no_result_is_named_with_what_is_wrong(tmp_path, change, said):
    write_store(tmp_path, result() | change)
    with pytest.raises(MulvError, match=rf"mulv\.jsonl:1 is not a result line: {said}"):
        find_runs(tmp_path)


@pytest.mark.parametrize("text", ["[1]", "3"])
def test_a_line_that_is_no_object_is_refused(tmp_path, text):
    write_store(tmp_path, result())
    (tmp_path / "trial" / "mulv.jsonl").write_text(text + "\n")
    with pytest.raises(MulvError, match="no object"):
        find_runs(tmp_path)


def test_a_missing_field_is_named(tmp_path):
    line = result()
    del line["commit"]
    write_store(tmp_path, line)
    with pytest.raises(MulvError, match="commit is missing"):
        find_runs(tmp_path)


def test_an_empty_directory_and_none_at_all_are_refused(tmp_path):
    with pytest.raises(MulvError, match="no finished run"):
        find_runs(tmp_path)
    with pytest.raises(MulvError, match="not a directory"):
        find_runs(tmp_path / "nowhere")
