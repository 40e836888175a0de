"""The commit that results name is that of the code that ran."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from mulv.bench.process import Child
from mulv.run.directory import UNKNOWN, commit
from tests.run.support import ROOT


def git(root: Path, *arguments: str) -> str:
    name = ["-c", "user.name=a", "-c", "user.email=a@b.c"]
    command = ["git", "-C", str(root), *name, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def change(root: Path, content: str) -> str:
    """A further commit of a work tree; its name."""
    (root / "mulv").mkdir(exist_ok=True)
    (root / "mulv" / "code.py").write_text(content)
    git(root, "add", "-A")
    git(root, "commit", "-m", content)
    return git(root, "rev-parse", "HEAD")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = tmp_path / "tree"
    root.mkdir()
    git(root, "init")
    change(root, "a = 1")
    return root


def test_it_is_the_head_of_the_work_tree_of_the_code(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = tree.parent / "other"
    git(tree, "worktree", "add", str(other))
    head = change(other, "a = 2")
    monkeypatch.chdir(tree)  # where it is started from does not matter
    assert commit(other) == head != commit(tree)


def test_code_that_differs_from_its_commit_is_marked(tree: Path) -> None:
    (tree / "README.md").write_text("not code")
    (tree / "mulv" / "code.py").write_text("a = 3")
    assert commit(tree) == git(tree, "rev-parse", "HEAD") + "-modified"


def test_a_commit_made_while_the_code_ran_is_not_its(tree: Path) -> None:
    first = commit(tree)
    assert change(tree, "a = 4") != first
    assert commit(tree) == first


def test_the_repository_of_a_hook_is_not_asked(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = tree.parent / "other"
    other.mkdir()
    git(other, "init")
    change(other, "b = 1")
    head = git(tree, "rev-parse", "HEAD")
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    assert commit(tree) == head


def test_code_that_lies_in_somebody_elses_repository_has_none(tree: Path) -> None:
    installed = tree / ".venv" / "lib" / "site-packages"
    installed.mkdir(parents=True)
    assert commit(installed) == UNKNOWN


def test_code_in_no_repository_has_none(tmp_path: Path) -> None:
    assert commit(tmp_path) == UNKNOWN


@pytest.fixture
def keeping() -> ModuleType:
    spec = importlib.util.spec_from_file_location("keeping", ROOT / "benchmarks" / "keeping.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_benchmark_keeps_the_commit_it_began_with(keeping: ModuleType, tmp_path: Path) -> None:
    assert commit() == keeping.COMMIT
    keeping.COMMIT = "c0ffee"
    keeping.keep("speed", {"rate": 3}, tmp_path)
    kept = json.loads((tmp_path / "speed.json").read_text())
    assert (kept["rate"], kept["commit"]) == (3, "c0ffee")


def test_a_benchmark_of_another_work_tree_is_refused(keeping: ModuleType, tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=f"mulv is of {tmp_path}, and this benchmark of {ROOT}"):
        keeping.check_tree(tmp_path)


def test_runs_of_a_suite_have_the_code_of_the_command_wherever_it_is_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mulv").mkdir()
    (tmp_path / "mulv" / "__init__.py").write_text("raise SystemExit('another work tree')")
    monkeypatch.chdir(tmp_path)
    decoy = subprocess.run([sys.executable, "-c", "import mulv"], capture_output=True, text=True)
    assert "another work tree" in decoy.stderr
    child, answers = Child([{}], tmp_path / "runs", threads=1), []
    while not child.ended:
        answers += child.read()
    assert [answer["error"] for _, answer in answers] == ["KeyError: 'suite'"]  # of a request without one
