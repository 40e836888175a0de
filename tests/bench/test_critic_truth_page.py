"""docs/critic-truth.md says what results/critic-truth holds."""

import json
import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "critic-truth.md").read_text()
sys.path.insert(0, str(ROOT / "benchmarks"))

from critic_truth_table import RESULTS, read, table  # noqa: E402


def test_the_table_is_the_one_that_the_results_make():
    assert table() in PAGE


def test_numbers_beside_the_table_are_in_the_results():
    """Comments of the page say where each is from: `number = file: path.to.it`."""
    quoted = re.findall(r"<!-- (\S+) = (\S+): (\S+) -->", PAGE)
    assert quoted
    for number, name, path in quoted:
        value = json.loads((RESULTS / f"{name}.json").read_text())
        for step in path.split("."):
            value = value[int(step)] if isinstance(value, list) else value[step]
        decimals = len(number.partition(".")[2])
        assert f"{value:.{decimals}f}" == number, (number, name, path, value)
        assert re.search(rf"(?<![\d.]){re.escape(number.replace('-', '−'))}(?!\d)", PAGE)


def test_every_result_is_of_the_same_policy_and_data():
    results = [result for seeds in read().values() for result in seeds]
    assert len({result["data"]["sha256"] for result in results}) == 1
    assert not any(result["commit"].endswith("-modified") for result in results)
