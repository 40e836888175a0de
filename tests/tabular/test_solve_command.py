"""`mulv theory solve`, as a person types it."""

import itertools
import json

import pytest

from mulv import cli
from mulv.tabular.files import read_alpha, write_pomdp
from mulv.tabular.zoo import make


def run(capsys, *arguments: str) -> tuple[int, list[str], str]:
    """The exit code, the lines of the output, and what is on stderr."""
    with pytest.raises(SystemExit) as end:
        cli.main(["theory", "solve", *arguments])
    said = capsys.readouterr()
    return int(end.value.code or 0), said.out.splitlines(), said.err


def test_bounds_are_printed_as_they_close_and_last_one_object(capsys, tmp_path):
    path = tmp_path / "tiger.alpha"
    code, lines, _ = run(capsys, "tiger", "--precision", "0.5", "--alpha", str(path), "--json")
    assert code == 0
    assert lines[0] == "tiger: 2 states, 3 actions, 2 observations, discount 0.95"
    assert lines[1].split() == ["seconds", "lower", "upper", "gap", "vectors", "beliefs"]
    gaps = [float(line.split()[3]) for line in lines[2:-3]]
    assert len(gaps) > 4
    assert all(after < before for before, after in itertools.pairwise(gaps))
    found = json.loads(lines[-1])
    assert list(found) == ["name", "seconds", "lower", "upper", "vectors", "beliefs"]
    assert found["name"] == "tiger"
    assert found["upper"] - found["lower"] == pytest.approx(gaps[-1], abs=1e-3)
    assert found["lower"] <= 19.3713 <= found["upper"]
    assert read_alpha(path, states=2, actions=3).value(make("tiger").start) == found["lower"]


def test_a_file_another_discount_and_the_end_of_time(capsys, tmp_path):
    path = write_pomdp(make("tiger"), tmp_path / "copy.pomdp")
    code, lines, _ = run(
        capsys, str(path), "--gamma", "0.5", "--precision", "1e-12", "--seconds", "1e-6", "--json"
    )
    assert code == 0
    assert lines[0].endswith("discount 0.5")
    assert "time was up before" in lines[-2]
    found = json.loads(lines[-1])
    assert -2.001 <= found["lower"] < found["upper"] < 19  # listening for ever costs two


def test_a_pomdp_with_a_horizon_is_solved_exactly(capsys):
    code, lines, _ = run(capsys, "tiger", "--horizon", "2", "--json")
    assert code == 0
    assert "exact over 2 decisions" in lines[-2]
    found = json.loads(lines[-1])
    assert found["lower"] == found["upper"] == pytest.approx(-1.95)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["tigr"], "did you mean 'tiger'?"),
        (["tiger", "--gamma", "1"], "give --gamma"),
        (["tiger", "--gamma", "1.5"], "between 0 and 1"),
        (["tiger", "--precision", "0"], "must be positive"),
        (["tiger", "--horizon", "0"], "0 decisions"),
        (["tiger", "--horizon", "2", "--alpha", "x.alpha"], "changes with the step"),
        (["tiger", "--alpha", "no/such/x.alpha"], "no directory"),
    ],
)
def test_mistakes_are_one_line(capsys, arguments, said):
    code, _, error = run(capsys, *arguments)
    assert code == 1
    complaint = [line for line in error.splitlines() if line.startswith("mulv: error:")]
    assert len(complaint) == 1
    assert said in complaint[0]
