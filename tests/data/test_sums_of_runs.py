"""A run whose replay is damaged is not resumed; one whose replay is whole is, whatever happened to it."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from mulv.core.errors import MulvError
from mulv.run.session import RunSession
from mulv.run.train import complete, environment_of, train
from tests.data.test_sums import flip
from tests.run.support import fingerprint, tiny
from tests.run.test_checkpoint import resign

CONFIG = tiny(total_steps=450, num_envs=2, eval_every=0, replay_capacity=300, keep_checkpoints=3)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """450 steps in two lanes, whose ring came round; the newest checkpoint lies within an episode."""
    path = tmp_path_factory.mktemp("damaged") / "run"
    train(CONFIG, path, progress=False)
    return path


def meta_of(run: Path) -> dict:
    newest = max((run / "checkpoints").iterdir())
    return json.loads((newest / "meta.json").read_text())


def take_up(path: Path, steps: int = 450) -> None:
    """Resume, and leave it at that."""
    config = complete(replace(CONFIG, total_steps=steps))
    RunSession(config, path, environment_of(config), resume=True, progress=False).close()


def random_bits(run: Path, rng: np.random.Generator, number: int, *, counted: bool) -> list[tuple[str, int]]:
    """File and position of random bits, of rows that the newest checkpoint counts, or of the others."""
    record = meta_of(run)["replay_sums"]
    layout = json.loads((run / "replay" / "layout.json").read_text())["layout"]
    lanes, ring = layout["lanes"], layout["capacity"] + layout["slack"]
    count = np.zeros((ring, lanes), bool)
    for lane, (first, end) in enumerate(zip(record["first"], record["end"], strict=True)):
        count[np.arange(first, end) % ring, lane] = True
    places, bits = np.flatnonzero(count.ravel() == counted), []
    assert places.size
    for _ in range(number):
        file = rng.choice(sorted((run / "replay").glob("*.bin")))
        size = 8 * file.stat().st_size // (ring * lanes)
        bits.append((file.name, int(rng.choice(places)) * size + int(rng.integers(size))))
    return bits


def test_every_flipped_bit_of_two_hundred_is_found_on_resume(run: Path) -> None:
    counts = meta_of(run)["replay_counts"]
    assert max(counts) > 150  # so many a lane are kept
    for name, bit in random_bits(run, np.random.default_rng(0), 200, counted=True):
        file = run / "replay" / name
        flip(file, bit)
        with pytest.raises(MulvError, match=rf"{name} is damaged in rows \d+ to \d+ of lane \d.*restore"):
            take_up(run)
        flip(file, bit)


def test_bits_of_rows_that_do_not_count_do_not_matter(run: Path, tmp_path: Path) -> None:
    for name in ("whole", "flipped"):
        shutil.copytree(run, tmp_path / name)
    flipped = tmp_path / "flipped"
    for name, bit in random_bits(run, np.random.default_rng(1), 50, counted=False):
        flip(flipped / "replay" / name, bit)
    longer = replace(CONFIG, total_steps=700)
    for name in ("whole", "flipped"):
        train(longer, tmp_path / name, progress=False, resume=True)
    expected, got = fingerprint(tmp_path / "whole"), fingerprint(flipped)
    assert {**got, "replay": None} == {**expected, "replay": None}


def test_a_replay_that_grew_and_was_resumed_twice_still_verifies(run: Path, tmp_path: Path) -> None:
    path = shutil.copytree(run, tmp_path / "run")
    ends = [meta_of(path)["replay_sums"]["end"]]
    for steps in (650, 850):
        take_up(path, steps)  # from the checkpoint that the next one resumes from, too
        train(replace(CONFIG, total_steps=steps), path, progress=False, resume=True)
        ends.append(meta_of(path)["replay_sums"]["end"])
    assert np.all(np.diff(ends, axis=0) >= 100)
    older = sorted((path / "checkpoints").iterdir())[:-1]
    shutil.rmtree(max((path / "checkpoints").iterdir()))
    said: list[str] = []
    longer = replace(CONFIG, total_steps=850)
    train(longer, path, progress=False, resume=True, say=said.append)  # falls back on the one before
    assert any(older[-1].name in line for line in said)
    assert meta_of(path)["counters"]["env_steps"] == 850


def test_a_run_without_sums_is_resumed_and_has_some_afterwards(run: Path, tmp_path: Path) -> None:
    path = shutil.copytree(run, tmp_path / "run")
    for saved in (path / "checkpoints").iterdir():
        meta = json.loads((saved / "meta.json").read_text())
        del meta["replay_sums"]
        (saved / "meta.json").write_text(json.dumps(meta))
        resign(saved)
    with_sums = shutil.copytree(run, tmp_path / "with-sums")
    for each in (path, with_sums):
        train(replace(CONFIG, total_steps=600), each, progress=False, resume=True)
    assert fingerprint(path) == fingerprint(with_sums)
    assert "replay_sums" in meta_of(path)
