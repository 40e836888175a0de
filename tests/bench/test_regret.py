"""`mulv theory regret`, as a person types it, and what it writes."""

import csv
import json
from pathlib import Path

import matplotlib.image
import numpy as np
import pytest

from mulv import cli
from mulv.bench.regret import figure, summary, table, write_csv
from mulv.tabular.learner.regret import Curve


def curve(method: str, H: int, reached: list[int | None], rounds: int = 200) -> Curve:
    """Worth a tenth until a round, then one."""
    k = np.arange(1, rounds + 1)
    values = np.array([np.where(k >= (at or rounds + 1), 1.0, 0.1) for at in reached])
    return Curve(method, H, 1.0, values)


CURVES = [
    curve("bonus", 10, [3, 5, 100]),
    curve("no-bonus", 10, [50, 60, None]),
    curve("bonus", 20, [7, 8, 9]),
    curve("no-bonus", 20, [None, None, 70]),
]


def test_the_table_has_medians_and_what_was_not_reached() -> None:
    lines = table(CURVES)
    assert len({len(line) for line in lines}) == 1
    assert [" ".join(line.split()) for line in lines] == [
        "H optimum bonus no-bonus",
        "10 1 50 (30 to 1,000) 600 (500 to > 2,000)",
        "20 1 160 (140 to 180) > 4,000 (1 of 3 seeds)",
    ]


def test_the_csv_holds_mean_and_range_over_seeds(tmp_path: Path) -> None:
    with write_csv(CURVES, tmp_path / "regret.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert {(row["method"], row["H"]) for row in rows} == {(c.method, str(c.horizon)) for c in CURVES}
    last = [row for row in rows if row["method"] == "bonus" and row["H"] == "10"][-1]
    assert (last["round"], last["episodes"]) == ("200", "2000")
    assert float(last["regret_mean"]) == pytest.approx(0.9 * (2 + 4 + 99) / 3)
    assert float(last["regret_max"]) == pytest.approx(0.9 * 99)
    assert float(last["value_min"]) == 1.0


def test_the_picture_shows_every_method(tmp_path: Path) -> None:
    config = {"pomdp": "lock", "H": [10, 20], "L": 3, "actions": 4, "window": 3, "seeds": 3}
    record = {"config": config, "curves": summary(CURVES)}
    (tmp_path / "regret.json").write_text(json.dumps(record))
    write_csv(CURVES, tmp_path / "regret.csv")
    image = matplotlib.image.imread(figure(tmp_path, tmp_path / "regret.png"))[..., :3]
    for colour in ((0x1F, 0x77, 0xB4), (0xFF, 0x7F, 0x0E)):  # C0 and C1
        assert np.sum(np.all(np.abs(image - np.array(colour) / 255) < 0.02, axis=2)) > 200


def test_the_command_writes_its_files_and_prints_one_object_last(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = "theory regret lock --H 8 --L 2 --episodes 1000 --seeds 4 --json --no-progress --out"
    with pytest.raises(SystemExit) as end:
        cli.main([*arguments.split(), str(tmp_path / "out")])
    assert end.value.code == 0
    *lines, last = capsys.readouterr().out.splitlines()
    record = json.loads(last)
    assert json.loads((tmp_path / "out" / "regret.json").read_text()) == record
    assert record["config"]["learners"]["bonus"]["alpha"] == 0.1
    found = {each["method"]: each for each in record["curves"]}
    assert max(found["bonus"]["episodes_to_half"]) <= 1000
    assert found["no-bonus"]["episodes_to_half"] == [None] * 4
    assert found["q-learning"]["episodes_to_half"].count(None) >= 3  # a seed may have luck
    assert "> 1,000 (0 of 4 seeds)" in lines[-2]
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"regret.csv", "regret.json", "regret.png"}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["lokc"], "did you mean 'lock'?"),
        (["lock", "--H", "10", "--episodes", "5"], "at least 10"),
        (["lock", "--H", "2", "--L", "3"], "1 <= L <= H"),
        (["lock", "--alpha", "0"], "positive"),
        (["lock", "--seeds", "0", "--H", "4"], "both need one"),
    ],
)
def test_mistakes_are_one_line(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        cli.main(["theory", "regret", *arguments, "--no-progress"])
    assert end.value.code == 1
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1
