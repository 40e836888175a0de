"""Checkpoints: what is written is read, what is damaged is noticed, what is foreign is refused."""

import hashlib
import os
import pickle
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

from mulv.core.errors import CheckpointError, MulvError, NonFiniteError
from mulv.run import checkpoint

STATE = {"a": jnp.arange(6.0).reshape(2, 3), "b": [jnp.zeros((), jnp.int32), jnp.ones(4)]}


def moved(by: float) -> dict[str, object]:
    return {"a": STATE["a"] + by, "b": STATE["b"]}


@pytest.fixture
def two(tmp_path: Path) -> Path:
    """A directory with a checkpoint at step 100 and one at 200."""
    for step in (100, 200):
        checkpoint.save(tmp_path, step, moved(step), {"step": step}, keep=2)
    return tmp_path


def resign(path: Path) -> None:
    """Give a forged checkpoint valid checksums."""
    names = ("arrays.npz", "meta.json")
    sums = [f"{hashlib.sha256((path / n).read_bytes()).hexdigest()}  {n}\n" for n in names]
    (path / "SHA256SUMS").write_text("".join(sums))


def test_what_is_saved_is_loaded_bit_for_bit(two: Path) -> None:
    state, meta, used = checkpoint.load_latest(two, STATE)
    assert used.name == "0000000200"
    assert meta == {"step": 200}
    for name, leaf in checkpoint.named_leaves(moved(200)).items():
        loaded = checkpoint.named_leaves(state)[name]
        assert loaded.dtype == leaf.dtype
        assert loaded.tobytes() == leaf.tobytes()


def test_only_the_newest_are_kept(two: Path) -> None:
    checkpoint.save(two, 300, STATE, {}, keep=2)
    assert checkpoint.saved_steps(two) == [200, 300]


@pytest.mark.parametrize("name", ["arrays.npz", "meta.json", "SHA256SUMS"])
@pytest.mark.parametrize("damage", ["truncate", "flip", "delete"])
def test_damage_is_noticed_named_and_passed_over(
    two: Path, name: str, damage: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file = two / "0000000200" / name
    content = bytearray(file.read_bytes())
    if damage == "truncate":
        file.write_bytes(content[: len(content) // 2])
    elif damage == "flip":
        content[len(content) // 3] ^= 0x10
        file.write_bytes(content)
    else:
        file.unlink()
    _, meta, used = checkpoint.load_latest(two, STATE)
    assert meta == {"step": 100}
    assert used.name == "0000000100"
    assert "0000000200" in capsys.readouterr().err


def test_every_single_bit_flip_of_the_arrays_is_noticed(two: Path) -> None:
    file = two / "0000000200" / "arrays.npz"
    content = file.read_bytes()
    rng = np.random.default_rng(0)
    for position in rng.integers(len(content), size=40):
        flipped = bytearray(content)
        flipped[position] ^= 1 << int(rng.integers(8))
        file.write_bytes(flipped)
        with pytest.raises(CheckpointError, match="damaged"):
            checkpoint.load(two / "0000000200", STATE)


class Explodes:
    """Unpickling this leaves a mark."""

    mark: str = ""

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.mkdir, (self.mark,)


@pytest.mark.parametrize("kind", ["pickle", "object array"])
def test_pickles_are_refused_and_nothing_of_them_runs(two: Path, tmp_path: Path, kind: str) -> None:
    Explodes.mark = str(tmp_path / "ran")
    file = two / "0000000200" / "arrays.npz"
    if kind == "pickle":
        file.write_bytes(pickle.dumps(Explodes()))
    else:
        bomb = np.empty(1, object)
        bomb[0] = Explodes()
        np.savez(file, a=bomb)
    resign(file.parent)
    with pytest.raises(CheckpointError, match="plain arrays"):
        checkpoint.load(file.parent, STATE)
    assert not Path(Explodes.mark).exists()


def test_another_agents_checkpoint_is_refused(two: Path) -> None:
    path = two / "0000000200"
    with pytest.raises(CheckpointError, match="no array c"):
        checkpoint.load(path, {**STATE, "c": jnp.ones(1)})
    with pytest.raises(CheckpointError, match="lacks: a"):
        checkpoint.load(path, {"b": STATE["b"]})
    with pytest.raises(CheckpointError, match=r"a is float32\(2, 3\)"):
        checkpoint.load(path, {**STATE, "a": jnp.ones((3, 2))})


def test_a_state_with_nan_is_not_saved(two: Path) -> None:
    with pytest.raises(NonFiniteError, match="a holds NaN"):
        checkpoint.save(two, 300, moved(np.nan), {}, keep=2)
    assert checkpoint.saved_steps(two) == [100, 200]


def test_leftovers_of_a_killed_writer_are_not_checkpoints(two: Path) -> None:
    leftover = two / f"{checkpoint.ASIDE}0000000300"
    leftover.mkdir()
    (leftover / "arrays.npz").write_bytes(b"half")
    assert checkpoint.load_latest(two, STATE)[1] == {"step": 200}
    checkpoint.remove_leftovers(two)
    assert not leftover.exists()


def test_a_full_disk_leaves_the_previous_checkpoint_intact(small_disk: Path) -> None:
    checkpoint.save(small_disk, 100, STATE, {"step": 100}, keep=2)
    with pytest.raises(MulvError, match=r"disk is full.*step 100 is intact"):
        checkpoint.save(small_disk, 200, {"a": jnp.ones(2**19), "b": STATE["b"]}, {}, keep=2)
    assert checkpoint.load_latest(small_disk, STATE)[1] == {"step": 100}
    assert [p.name for p in small_disk.iterdir()] == ["0000000100"]
