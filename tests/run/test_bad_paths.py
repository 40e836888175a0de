"""Paths and files that cannot be used: one line on stderr, while faults of our own stay visible."""

import errno
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from mulv import cli
from mulv.run.config import RunConfig
from mulv.run.directory import RunDirectory
from mulv.run.train import train
from tests.run.support import TINY_FLAGS, tiny


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A short run, evaluated once."""
    path = tmp_path_factory.mktemp("paths") / "runs" / "run"
    train(tiny(total_steps=60, eval_every=60, eval_episodes=1), path, progress=False)
    return path


@pytest.fixture
def read_only(tmp_path: Path) -> Iterator[Path]:
    """A file system that nobody can write to, the superuser included."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "ro,size=1m", "tmpfs", str(disk)]
    if subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("mounting a file system needs root")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


def line_of(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> str:
    """The one line that a command ends with."""
    with pytest.raises(SystemExit) as ended:
        cli.main([str(argument) for argument in arguments])
    error = capsys.readouterr().err
    assert ended.value.code == 1
    assert error.startswith("mulv: error: ")
    assert error.count("\n") == 1
    return error.removeprefix("mulv: error: ").rstrip()


@pytest.mark.parametrize("out", ["/dev/null", "FILE", "FILE/below"])
def test_training_into_a_file_is_one_line(out, tmp_path, capsys) -> None:
    file = tmp_path / "file"
    file.write_text("mine")
    line = line_of(capsys, "train", *TINY_FLAGS, "--out", out.replace("FILE", str(file)))
    assert line.endswith("Not a directory; choose another path")
    assert file.read_text() == "mine"


@pytest.mark.parametrize("name", ["file", "file/below"])
def test_learning_from_data_into_a_file_is_one_line(name, run, tmp_path, capsys) -> None:
    (tmp_path / "file").write_text("mine")
    flags = ["--data", run, *TINY_FLAGS, "--steps", "8"]
    line = line_of(capsys, "offline", *flags, "--out", tmp_path / name)
    assert line.endswith("; choose another path")
    assert (tmp_path / "file").read_text() == "mine"


def commands(run: Path, disk: Path) -> dict[str, list[str | Path]]:
    """Every command that writes, told to write to a disk."""
    random = ["--collect", "random", "--task", "Pendulum-P", "--steps", "9"]
    return {
        "train": ["train", *TINY_FLAGS, "--out", disk],
        "offline": ["offline", "--data", run, *TINY_FLAGS, "--steps", "8", "--out", disk / "new"],
        "collect": ["offline", *random, "--out", disk / "new", "--no-progress"],
        "compare": ["compare", run, "--out", disk / "new.png"],
        "report": ["report", run.parent, "--out", disk / "new.html"],
    }


@pytest.mark.parametrize("command", ["train", "offline", "collect", "compare", "report"])
def test_a_read_only_disk_is_one_line(command, run, read_only, capsys) -> None:
    line = line_of(capsys, *commands(run, read_only)[command])
    assert str(read_only) in line
    assert line.endswith("is on a disk that is read-only; choose another path")


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["eval", "FILE"], "FILE is a file, not a run directory"),
        (["eval", "RUN", "--episodes", "0"], "episodes is 0; it must be at least 1"),
        (["eval", "RUN", "--seed", "-1"], "seed is -1; it must not be negative"),
        (["eval", "RUN", "--video", "film.gif"], "a film is made of frames"),
        (["train", "--resume", "FILE"], "FILE is a file, not a run directory"),
        (["train", "--branch", "FILE"], "FILE is a file, not a run directory"),
        (["compare", "RUN", "--out", "nowhere/x.png"], "there is no directory nowhere to write x.png in"),
        (["compare", "RUN", "--out", "x.foo"], "x.foo has no ending of a picture; use one of"),
        (["compare", "RUN", "--out", "x"], "x has no ending of a picture; use one of"),
        (["report", "ROOT", "--out", "nowhere/x.html"], "nowhere/x.html cannot be written"),
        (["report", "ROOT", "--out", "x.png"], "x.png is not named as a page is; let it end in .html"),
        (
            ["offline", "--collect", "random", "--task", "Pendulum-P", "--out", "x", "--seed", "-1"],
            "seed is -1",
        ),
        (
            ["offline", "--collect", "randm", "--out", "x"],
            "no kind of dataset is called 'randm'; did you mean",
        ),
    ],
)
def test_bad_arguments_are_one_line(arguments, line, run, tmp_path, capsys, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("FILE").write_text("mine")
    places = {"RUN": run, "ROOT": run.parent}
    assert line in line_of(capsys, *(places.get(argument, argument) for argument in arguments))
    assert [path.name for path in tmp_path.iterdir()] == ["FILE"]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("[" * 10_000 + "]" * 10_000, "it nests too deeply"),
        ('{"config": ' * 10_000 + "3" + "}" * 10_000, "it nests too deeply"),
        ("[]", "there is no config in it"),
        ("3", "there is no config in it"),
        ("{}", "there is no config in it"),
        ("", "Expecting value"),
        ("\udcff", "can't decode"),
        ('{"config": 3}', "a configuration is an object, not int"),
        ('{"config": {"agent": 3}}', "agent is 3; it must be an object"),
        ('{"config": {"algo": []}}', "algo is []; it must be a name"),
        ('{"config": {"task": 3}}', "RunConfig.task is 3, which is not str"),
        (
            '{"config": {"agent": {"latent": 3}}}',
            "latent is 3, which is not an object of kind gaussian or cat",
        ),
        ('{"config": {"agent": {"bonus": "x"}}}', "bonus is 'x', which is not an object"),
        ('{"config": {"agent": {"critic": {"kind": "deap"}}}}', "did you mean 'deep'?"),
        ('{"config": {"agent": {"critic": {"kind": []}}}}', "MuLVConfig.critic says no kind"),
        ('{"config": {"agent": {"latent": [], "latent_dim": 3}}}', "latent is [], which is not an object"),
        ('{"config": {"agent": {"gamma": NaN}}}', "gamma is nan; it must be finite"),
    ],
)
def test_a_configuration_that_is_none_is_one_line_with_its_file(content, reason, tmp_path, capsys) -> None:
    file = tmp_path / "config.json"
    file.write_bytes(content.encode("utf-8", "surrogateescape"))
    for command in (["eval", tmp_path], ["train", "--resume", tmp_path]):
        line = line_of(capsys, *command)
        assert line.startswith(f"{file} cannot be read: ")
        assert reason in line


def test_a_bug_in_reading_a_configuration_is_not_taken_for_a_bad_file(tmp_path, monkeypatch) -> None:
    with RunDirectory(tmp_path / "run") as directory:
        directory.write_config(RunConfig())
    monkeypatch.setattr("mulv.run.config.migrate", lambda saved: saved.no_such_method())
    with pytest.raises(AttributeError, match="no_such_method"):
        cli.main(["eval", str(tmp_path / "run")])


def ends_by(error: OSError, monkeypatch: pytest.MonkeyPatch, *arguments: str) -> None:
    """A command that fails so."""

    def fail(arguments: list[str]) -> int:
        raise error

    monkeypatch.setattr("mulv.cli.envs.run", fail)
    cli.main(["envs", *arguments])


@pytest.mark.parametrize(
    "file", ["/data/out/x/y", "/data/out/x", "/data/out", "/data/out/.writing-x", "runs/x"]
)
@pytest.mark.parametrize(
    "code", [errno.EACCES, errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.EEXIST, errno.ENAMETOOLONG]
)
def test_a_path_that_somebody_named_is_one_line(code, file, monkeypatch, capsys) -> None:
    """Itself, what is in it, beside it or above it; relative paths are those of defaults."""
    for arguments in (["--out", "/data/out/x"], ["--out=/data/out/x"]):
        with pytest.raises(SystemExit):
            ends_by(OSError(code, os.strerror(code), file), monkeypatch, *arguments)
        assert capsys.readouterr().err == f"mulv: error: {file}: {os.strerror(code)}; choose another path\n"


@pytest.mark.parametrize(
    "error",
    [
        FileNotFoundError(errno.ENOENT, "No such file or directory", "/usr/lib/mulv/style.css"),
        PermissionError(errno.EPERM, "Operation not permitted"),
        OSError(errno.EBADF, "Bad file descriptor"),
        OSError(errno.EINVAL, "Invalid argument", "/data/out/x"),
    ],
    ids=["a file of ours", "no file", "a closed file", "a wrong call"],
)
def test_a_fault_of_our_own_is_raised(error, monkeypatch) -> None:
    with pytest.raises(OSError, match=error.strerror) as raised:
        ends_by(error, monkeypatch, "--out", "/data/out/x")
    assert raised.value is error


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_is_one_line_whatever_was_written(code, monkeypatch, capsys) -> None:
    with pytest.raises(SystemExit):
        ends_by(OSError(code, os.strerror(code)), monkeypatch)
    assert "the disk is full" in capsys.readouterr().err
