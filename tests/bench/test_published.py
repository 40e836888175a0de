"""The published numbers fit our tasks and methods, and are part of the package."""

import fnmatch
import json
import tomllib
from pathlib import Path

import numpy as np
import pytest

from mulv.bench.published import (
    PAPER_METHODS,
    PAPER_TASKS,
    ceiling,
    compares_with_paper,
    full_state_curves,
    paper_table,
    random_return,
    split_task,
)
from mulv.envs import TASKS

ROOT = Path(__file__).parents[2]


def test_the_paper_has_six_methods_on_ten_tasks_and_all_are_ours():
    table = paper_table()
    assert len(table) == 10
    for base, methods in table.items():
        assert set(methods) == set(PAPER_METHODS.values())
        assert f"{base}-P" in TASKS
        assert f"{base}-F" in TASKS


@pytest.mark.parametrize(
    ("base", "method", "mean", "std"),
    [
        ("HalfCheetah", "mulv", 3596.2, 874.5),
        ("hopper-hop", "dreamer", 59.2, 15.9),
        ("Ant", "sac", 1612.0, 223.0),
        ("Pendulum", "lvrep", 167.1, 3.1),
    ],
)
def test_cells_are_those_of_the_paper(base, method, mean, std):
    assert paper_table()[base][method] == (mean, std)


def test_ceilings_are_of_native_rewards_whatever_is_seen():
    assert ceiling("HalfCheetah-P") == ceiling("HalfCheetah-F") == (10729, 7679)
    assert ceiling("hopper-hop-P") == (261, 79)
    assert ceiling("Hopper-P-mbbl") is None
    assert ceiling("Pendulum-P") is None


def test_random_returns_are_those_of_the_results():
    lines = [json.loads(line) for line in (ROOT / "results/random/random.jsonl").read_text().splitlines()]
    assert {line["task"] for line in lines} >= {f"{base}-P" for base in PAPER_TASKS.values()}
    for line in lines:
        assert random_return(line["task"]) == pytest.approx(np.mean(line["returns"]), abs=1e-3)
    assert random_return("Hopper-F") == random_return("Hopper-P") != random_return("Hopper-P-mbbl")
    assert random_return("Humanoid-P-strict") == random_return("Humanoid-P")
    assert random_return("somebody/Else-v3") is None


@pytest.mark.parametrize(
    ("task", "parts", "problem"),
    [
        ("HalfCheetah-P", ("HalfCheetah", "P", ""), "HalfCheetah"),
        ("cheetah-run-F", ("cheetah-run", "F", ""), "cheetah-run"),
        ("Hopper-P-mbbl", ("Hopper", "P", "mbbl"), "Hopper-mbbl"),
        ("Swimmer-v5", ("Swimmer-v5", "", ""), "Swimmer-v5"),
    ],
)
def test_names_of_tasks_come_apart(task, parts, problem):
    assert split_task(task) == parts
    assert split_task(task).problem == problem


def test_rewards_that_differ_from_the_papers_are_not_compared():
    """Gymnasium's Pendulum pays at most 0; the paper's returns are positive."""
    assert paper_table()["Pendulum"]["mulv"].mean > 0
    assert not compares_with_paper("Pendulum-P")
    assert compares_with_paper("Pendulum-P-mbbl")
    assert compares_with_paper("HalfCheetah-P")
    assert compares_with_paper("walker-run-P")
    assert not compares_with_paper("Hopper-P")
    assert not compares_with_paper("pendulum-swingup-P")


@pytest.mark.parametrize("folder", ["mulv/bench", "mulv/bench/report"])
def test_every_data_file_is_declared_so_that_an_installed_package_has_it(folder):
    globs = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["package-data"]
    found = [
        str(path.relative_to(ROOT / folder))
        for path in (ROOT / folder).rglob("*")
        if path.suffix in (".csv", ".css") and (folder != "mulv/bench" or "report" not in path.parts)
    ]
    assert found
    for name in found:
        assert any(fnmatch.fnmatch(name, glob) for glob in globs[folder.replace("/", ".")]), name


def test_published_curves_end_where_the_ceilings_are():
    """SAC's last point is the ceiling's SAC, and no point is above the best; masks do not matter."""
    for task in ("HalfCheetah", "Walker", "cheetah-run", "walker-run"):
        points, known = full_state_curves(f"{task}-F"), ceiling(f"{task}-F")
        assert points == full_state_curves(f"{task}-P")
        (last,) = (p.ret for p in points if p.method == "SAC" and p.env_steps == 200_000)
        assert last == pytest.approx(known.sac, rel=0.001)
        assert max(p.ret for p in points) <= known.best
    assert full_state_curves("HalfCheetah-F-mbbl") == full_state_curves("Pendulum-F") == []
