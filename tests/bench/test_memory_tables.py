"""The tables of docs/memory.md are what results/memory holds."""

from pathlib import Path

import pytest

from benchmarks import memory_table

PAGE = Path(__file__).parents[2] / "docs/memory.md"


@pytest.mark.parametrize("part", ["overview", "HalfCheetah-P", memory_table.POLICY])
def test_the_page_has_the_figures_of_the_results(part: str):
    lines = memory_table.overview() if part == "overview" else memory_table.entries(part)
    assert "\n".join(lines) in PAGE.read_text()


@pytest.mark.parametrize("name", [*memory_table.TASKS, memory_table.POLICY])
def test_a_result_says_what_made_it(name: str):
    record = memory_table.read(name)
    assert record["config"]["task"] == name.removesuffix("-policy")
    assert record["config"]["actions"] == ("policy" if name.endswith("-policy") else "uniform")
    assert len(record["commit"]) == 40
    assert "mujoco" in record["versions"]
