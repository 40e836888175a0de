"""The bar that a person watches."""

import io
import sys

import pytest

from mulv.run import progress


def test_the_bar_shows_pretraining_while_no_step_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    written, now = io.StringIO(), [1000.0]
    monkeypatch.setattr(sys, "stderr", written)
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    bar = progress.Progress(total=100, start=0, label="run", enabled=True)
    bar.step(10, -5.0)
    shown = []
    for updates in range(0, 40, 4):
        now[0] += 10.0  # a log file gets a line every 30 seconds
        before = written.tell()
        bar.pretrained(updates, 40)
        shown.append("pretraining=" in written.getvalue()[before:])
    assert shown == [i % 3 == 0 for i in range(10)]
    assert "pretraining=36/40" in written.getvalue()
    bar.pretrained(40, 40)
    before = written.tell()
    bar.step(100, -4.0)
    bar.close()
    assert "return=-4" in (last := written.getvalue()[before:])
    assert "pretraining" not in last


def test_a_bar_that_is_off_writes_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    bar = progress.Progress(total=100, start=0, label="run", enabled=False)
    bar.pretrained(4, 40)
    bar.step(100, 1.0)
    bar.close()
    assert capsys.readouterr().err == ""
