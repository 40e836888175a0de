"""`mulv bench` apart from its runs: what counts as finished, what it shows, what it refuses."""

import importlib.util
import io
from pathlib import Path
from typing import Any

import pytest

from mulv import cli
from mulv.bench.board import Board, Pace, duration
from mulv.bench.store import append
from mulv.bench.suite import Job, read_suite
from mulv.bench.suites import SUITES
from mulv.bench.sweep import finished
from mulv.run.config import config_hash, to_json
from mulv.run.directory import code_version
from tests.bench.sweeps import write_suite
from tests.bench.test_store import line


def result_of(job: Job, **changes: Any) -> dict[str, Any]:
    about = {"method": job.method, "config": to_json(job.config), "config_hash": config_hash(job.config)}
    return line(job.config.seed, **{**about, "code": code_version(), **changes})


def run_cli(*arguments: str | Path) -> int:
    with pytest.raises(SystemExit) as exit_:
        cli.main(["bench", *map(str, arguments)])
    return int(exit_.value.code or 0)


def test_a_run_is_finished_by_its_config(tmp_path: Path) -> None:
    jobs = read_suite(write_suite(tmp_path)).jobs()
    append(tmp_path, result_of(jobs[0]))
    longer = read_suite(write_suite(tmp_path)).chosen(steps=900).jobs()
    assert list(finished(tmp_path, jobs)) == [jobs[0].key]
    assert finished(tmp_path, longer) == {}


def test_a_run_of_other_code_is_finished_unless_asked_otherwise(tmp_path: Path) -> None:
    jobs = read_suite(write_suite(tmp_path)).jobs()
    append(tmp_path, result_of(jobs[0], code="older"))
    append(tmp_path, result_of(jobs[1]))
    assert set(finished(tmp_path, jobs)) == {jobs[0].key, jobs[1].key}
    assert set(finished(tmp_path, jobs, same_code=True)) == {jobs[1].key}


def test_a_line_older_than_a_field_still_counts(tmp_path: Path) -> None:
    job = read_suite(write_suite(tmp_path)).jobs()[0]
    config = to_json(job.config)
    del config["agent"]["pink_noise_octaves"], config["keep_checkpoints"]
    append(tmp_path, result_of(job, config=config, config_hash="of fewer fields"))
    assert list(finished(tmp_path, [job])) == [job.key]
    config["agent"]["a_field_of_the_past"] = 1
    assert finished(tmp_path / "elsewhere", [job]) == {}
    append(tmp_path / "elsewhere", result_of(job, config=config))
    assert finished(tmp_path / "elsewhere", [job]) == {}


def test_code_is_what_decides_a_run(tmp_path: Path) -> None:
    versions = []
    for number, (room, text) in enumerate(
        [
            ("core", "def f(x):\n    return x + 1\n"),
            ("core", '"""Said."""\n# why\ndef f(x):\n    """What."""\n    return x  + 1\n'),
            ("bench", "changed = True\n"),
            ("core", "def f(x):\n    return x + 2\n"),
        ]
    ):
        root = tmp_path / str(number)
        for name in ("core", "bench"):
            (root / name).mkdir(parents=True)
            (root / name / "a.py").write_text("def f(x):\n    return x + 1\n")
        (root / room / "a.py").write_text(text)
        versions.append(code_version(root))
    assert versions[0] == versions[2] != versions[3]


def test_a_dry_run_lists_the_runs_and_writes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    suite, store = write_suite(tmp_path), tmp_path / "store"
    assert run_cli(suite, "--dry-run", "--out", store) == 0
    out = capsys.readouterr().out
    assert out.count("to do") == 5  # four runs, and their number
    assert "sac/n-step-2 Pendulum-P seed 1" in out
    assert not store.exists()


def test_the_list_shows_every_suite_and_what_is_lacking(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_cli("--list") == 0
    lines = {row.split()[0]: row for row in capsys.readouterr().out.splitlines()}
    assert set(SUITES) <= set(lines)
    assert lines["quick"].split()[1:6] == ["4", "2", "3", "15,000", "24"]
    assert "dreamer, mwm" in lines["metaworld-50"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "say which suite; `mulv bench --list` shows them"),
        (["quik"], "no suite is called 'quik'; did you mean 'quick'?"),
        (["quick", "--methods", "mulw"], "no method of quick is called 'mulw'; did you mean 'mulv'?"),
        (["quick", "--tasks", "Hoper-P"], "no task of quick is called 'Hoper-P'; did you mean 'Hopper-P'?"),
        (["quick", "--seeds", "0"], "--seeds and --steps must be at least 1"),
        (["quick", "--workers", "0"], "--workers and --threads must be at least 1"),
        (["quick", "--gpus", "1"], "it goes with --ray"),
        (["quick", "--ray", "127.0.0.1:1"], "there is no Ray cluster at 127.0.0.1:1: "),
        (["quick", "--ray", "automatic"], "'automatic' is not an address of a Ray cluster"),
        (["metaworld-50"], "dreamer, mwm"),
        (["absent.json"], "absent.json cannot be read"),
    ],
)
def test_bad_input_gets_one_clear_line(
    arguments: list[str],
    said: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run_cli(*arguments) == 1
    error = capsys.readouterr().err
    assert error.startswith("mulv: error: ")
    assert said in error
    assert error.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_without_the_extra_ray_is_refused_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *a: None if name == "ray" else find(name, *a)
    )
    assert run_cli(write_suite(tmp_path), "--ray", "auto", "--out", tmp_path / "store") == 1
    assert capsys.readouterr().err == "mulv: error: --ray needs the extra ray: pip install 'mulv[ray]'\n"
    assert not (tmp_path / "store").exists()


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def progress(steps: int, start: int = 0) -> dict[str, Any]:
    return {"steps": steps, "from": start, "return": -100.4}


def test_a_log_file_gets_aligned_lines_and_no_control_characters(tmp_path: Path) -> None:
    jobs, out = read_suite(write_suite(tmp_path)).jobs(), io.StringIO()
    board = Board(jobs, before=2, slots=1, stream=out)
    board.progress(jobs[0], progress(0))
    board.failed(jobs[0], "one line\nand another", again=True)
    board.progress(jobs[0], progress(200, start=200))
    board.done(jobs[0], result_of(jobs[0]))
    board.failed(jobs[1], "for good", again=False)
    board.close()
    lines = out.getvalue().splitlines()
    assert lines[:-1] == [
        "begins    sac Pendulum-P seed 0           800 steps",
        "again     sac Pendulum-P seed 0           one line …",
        "begins    sac Pendulum-P seed 0           800 steps, from 200 on",
        "done      sac Pendulum-P seed 0           final return -0.5, 2s",
        "failed    sac/n-step-2 Pendulum-P seed 0  for good",
    ]
    assert lines[-1].startswith("3 of 6 runs, 1 failed; about ")


def test_a_terminal_sees_the_table_redrawn_in_place(tmp_path: Path) -> None:
    jobs, out = read_suite(write_suite(tmp_path)).jobs(), Terminal()
    board = Board(jobs, before=0, slots=2, stream=out)
    for job in jobs[:2]:
        board.progress(job, progress(400))
    board.refresh()
    drawn = out.getvalue()
    assert drawn.count("running") == 2
    assert "50%" in drawn
    board.done(jobs[0], result_of(jobs[0]))
    after = out.getvalue()[len(drawn) :]
    assert after.startswith("\x1b[3F\x1b[J")  # two rows and the summary are taken back
    assert "done" in after


def test_the_time_left_follows_the_last_minute(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    job, now = read_suite(write_suite(tmp_path)).jobs()[0], 0.0
    monkeypatch.setattr("mulv.bench.board.time.monotonic", lambda: now)
    pace = Pace(job)
    for seconds, steps in ((0, 0), (1, 400), (100, 500), (120, 600)):  # a fast start, then 5 a second
        now = float(seconds)
        pace.update(steps, None)
    assert pace.rate == 5.0
    assert "40s left" in pace.line()


@pytest.mark.parametrize(("seconds", "text"), [(44.6, "45s"), (750, "12m30s"), (11_100, "3h05m")])
def test_durations(seconds: float, text: str) -> None:
    assert duration(seconds) == text
