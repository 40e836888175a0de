"""What the pages name exists: options of the command line, tests, files."""

import ast
import dataclasses
import importlib
import importlib.util
import re
import typing
from collections.abc import Iterator
from pathlib import Path

import pytest

from mulv.agents import ALGORITHMS
from mulv.cli.bench import BenchOptions
from mulv.cli.compare import CompareOptions
from mulv.cli.evaluate import EvalOptions
from mulv.cli.memory import MemoryOptions
from mulv.cli.offline import OfflineOptions
from mulv.cli.report import ReportOptions
from mulv.cli.theory import TheoryCheckOptions, TheoryRegretOptions, TheorySolveOptions
from mulv.cli.train import TrainOptions
from mulv.core.options import group_kinds
from mulv.run.config import RunConfig
from mulv.run.offline.collect import CollectConfig

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
OPTIONS = (
    *(BenchOptions, CompareOptions, EvalOptions, OfflineOptions, ReportOptions, TrainOptions, RunConfig),
    *(CollectConfig, MemoryOptions, TheoryCheckOptions, TheoryRegretOptions, TheorySolveOptions),
)
# Options of other programs that the pages name, and of scripts in benchmarks/.
OTHERS = {"--help", "--version"} | {
    flag
    for script in (ROOT / "benchmarks").glob("*.py")
    for flag in re.findall(r'"(--[a-z][\w-]*)"', script.read_text())
}


def flags(cls: type, prefix: str = "") -> Iterator[str]:
    """Every flag of a configuration, and of every kind of its groups."""
    hints = typing.get_type_hints(cls)
    for field in dataclasses.fields(cls):
        name = f"{prefix}{field.name.rstrip('_').replace('_', '-')}"
        yield f"--{name}"
        *path, last = name.split(".")
        yield "--" + ".".join([*path, f"no-{last}"])
        for group in group_kinds(hints[field.name]).values():
            if group is not None:
                yield from flags(group, f"{name}.")


KNOWN = OTHERS | {
    flag
    for cls in (*OPTIONS, *(algorithm.config for algorithm in ALGORITHMS.values()))
    for flag in flags(cls)
}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_option_that_a_page_names_exists(page: Path) -> None:
    named = set(re.findall(r"(?<![\w-])--[a-zA-Z][\w.-]*[\w]", page.read_text()))
    assert sorted(named - KNOWN) == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_test_that_a_page_names_exists(page: Path) -> None:
    missing, file = [], ""
    for name, test in re.findall(r"`(?:\w+/)*(test_\w+\.py|…)::(test_\w+)", page.read_text()):
        file = file if name == "…" else name
        (source,) = ROOT.glob(f"tests/*/{file}")
        if f"def {test}(" not in source.read_text():
            missing.append(f"{file}::{test}")
    assert missing == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_file_of_the_package_that_a_page_names_exists(page: Path) -> None:
    named = re.findall(r"`(mulv/[\w/]+\.py|benchmarks/\w+\.py|tests/[\w/]+\.py)", page.read_text())
    assert [name for name in named if not (ROOT / name).exists()] == []


def test_a_flag_that_is_none_would_be_found() -> None:
    assert {"--critic.features", "--policy.noise.initial", "--elbo.no-predict-changes"} <= KNOWN
    assert not {"--features", "--elbo-weight", "--solver"} & KNOWN


@pytest.mark.parametrize("script", sorted((ROOT / "benchmarks").glob("*.py")), ids=lambda path: path.stem)
def test_every_name_that_a_benchmark_imports_from_mulv_exists(script: Path) -> None:
    for node in ast.walk(ast.parse(script.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("mulv"):
            module = importlib.import_module(node.module or "")
            for alias in node.names:
                found = hasattr(module, alias.name) or importlib.util.find_spec(f"{node.module}.{alias.name}")
                assert found, f"{script.name} imports {alias.name} from {node.module}"
