"""`mulv theory check`, as a function and as a person types it."""

import json

import pytest

from mulv import cli
from mulv.core.errors import MulvError
from mulv.tabular.check import check
from mulv.tabular.files import write_pomdp
from mulv.tabular.named import find_pomdp
from mulv.tabular.zoo import make
from tests.tabular.models import generic


def verdicts(report) -> dict[str, bool | None]:
    return {finding.what: finding.passed for finding in report.findings}


def test_the_lock_is_decoded_by_its_l_and_the_claims_hold() -> None:
    report = check(make("lock", H=7, L=3), 3)
    assert report.decodable
    assert report.horizon == 7
    assert report.moment_matching_error < 1e-12
    assert report.linear_q_residual < 1e-10
    assert verdicts(report)["linear-Q residual, 3 steps"]


def test_a_shorter_window_fails_every_claim_that_rests_on_decoding() -> None:
    report = check(make("lock", H=7, L=3), 2)
    assert not report.decodable
    failed = [what for what, passed in verdicts(report).items() if passed is False]
    assert failed == [
        "2-decodable: gap between beliefs",
        "observable: γ",
        "Q over windows: gap",
        "moment matching error",
        "linear-Q residual, 2 steps",
    ]


def test_a_pomdp_that_no_short_window_decodes_fails() -> None:
    report = check(make("t-maze"), 3)
    assert not report.decodable
    assert report.moment_matching_error > 1e-3
    assert report.linear_q_residual > 1e-3


def test_what_observations_tell_is_reported() -> None:
    found = check(generic(0, states=2), 1).gamma
    assert found is not None
    assert found > 0
    assert check(make("tiger"), 2).gamma == 0


def test_too_short_a_horizon_is_said() -> None:
    table = "\n".join(check(make("tiger"), 2, horizon=3).table())
    assert "fewer than 2L" in table
    assert "fewer than 2L" not in "\n".join(check(make("tiger"), 2, horizon=4).table())


def test_the_table_is_aligned_and_names_the_paper() -> None:
    lines = check(make("tiger"), 2).table()
    verdict = [line.index(word) for line in lines for word in ("pass", "FAIL") if f"  {word}  " in line]
    assert len(verdict) == 6
    assert len(set(verdict)) == 1
    assert any("Definition, L-decodability" in line for line in lines)


def test_the_command_prints_the_table_and_last_one_object(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        cli.main(["theory", "check", "random-decodable", "--L", "2", "--json"])
    assert end.value.code == 0
    *table, last = capsys.readouterr().out.splitlines()
    assert len(table) == 10
    summary = json.loads(last)
    assert list(summary) == ["decodable", "L", "gamma", "moment_matching_error", "linear_q_residual"]
    assert summary["decodable"] is True
    assert summary["L"] == 2
    assert summary["linear_q_residual"] < 1e-10


def test_a_file_is_checked_as_its_pomdp_is(tmp_path) -> None:
    path = write_pomdp(make("tiger"), tmp_path / "copy.pomdp")
    assert check(find_pomdp(str(path)), 2).summary() == pytest.approx(check(make("tiger"), 2).summary())


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["check", "lokc"], "did you mean 'lock'?"),
        (["chekc"], "did you mean 'check'?"),
        (["check", "missing.pomdp"], "cannot be read"),
        (["check", "tiger", "--L", "0"], "both need one"),
    ],
)
def test_mistakes_are_one_line(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        cli.main(["theory", *arguments])
    assert end.value.code == 1
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1


def test_a_pomdp_with_too_many_histories_says_so() -> None:
    with pytest.raises(MulvError, match="shorter horizon"):
        check(generic(0, states=20, observations=30), 3, horizon=9)
