"""Runs that train together equal runs that train alone, up to rounding, and end each for itself."""

import json
import os
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mulv.agents import ALGORITHMS, algorithm, preset
from mulv.core.errors import BusyError, EnvironmentFault, MulvError, NonFiniteError
from mulv.core.spec import EnvSpec
from mulv.envs import make_env
from mulv.run import checkpoint, compiled, seeding
from mulv.run.directory import RunDirectory
from mulv.run.evaluation import Evaluation
from mulv.run.interrupts import Interrupted
from mulv.run.seeding import Stream
from mulv.run.session import Outcome
from mulv.run.train import train
from mulv.run.vmap_seeds import Member, train_vmapped
from tests.agents.support import SEE_FRAMES, random_batches
from tests.run.support import fingerprint, tiny
from tests.run.test_loop import Faulty

STEPS, WARM_UP = 300, 100


def config(seed: int, **changes: Any) -> Any:
    return tiny(**{"seed": seed, "total_steps": STEPS, "eval_every": STEPS, "keep_checkpoints": 5, **changes})


def outcomes(ends: Iterator[tuple[Member, Outcome | Exception]]) -> dict[int, Outcome | Exception]:
    return {member.config.seed: end for member, end in ends}


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    paths = [tmp_path_factory.mktemp("alone") / str(seed) for seed in range(2)]
    for seed, path in enumerate(paths):
        train(config(seed), path, progress=False)
    return paths


@pytest.fixture(scope="module")
def together(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    paths = [tmp_path_factory.mktemp("together") / str(seed) for seed in range(2)]
    ends = outcomes(train_vmapped([Member(config(seed), path) for seed, path in enumerate(paths)]))
    assert all(isinstance(end, Outcome) for end in ends.values())
    return paths


def parameters(run: Path) -> np.ndarray:
    with np.load(run / "checkpoints" / f"{STEPS:010d}" / "arrays.npz") as arrays:
        return np.concatenate([arrays[name].ravel().astype(np.float64) for name in sorted(arrays.files)])


def rows(run: Path, name: str) -> np.ndarray:
    """A column of the replay, which has two rows more than steps: the first observations of two episodes."""
    return np.fromfile(run / "replay" / f"{name}.bin", np.float32).reshape(2 * (STEPS + 1), -1)[: STEPS + 2]


def close(one: np.ndarray, other: np.ndarray) -> bool:
    return bool(np.allclose(one, other, rtol=1e-3, atol=1e-3))


def test_members_equal_runs_alone(alone: list[Path], together: list[Path]) -> None:
    for seed in range(2):
        mine, other = together[seed], alone[1 - seed]
        for column in ("obs", "action", "reward"):
            np.testing.assert_array_equal(rows(mine, column)[:WARM_UP], rows(alone[seed], column)[:WARM_UP])
            assert close(rows(mine, column), rows(alone[seed], column))
            assert not close(rows(mine, column), rows(other, column))
        assert close(parameters(mine), parameters(alone[seed]))
        assert not close(parameters(mine), parameters(other))
        assert fingerprint(mine)["meta"]["rngs"] == fingerprint(alone[seed])["meta"]["rngs"]  # type: ignore[index]


def test_members_leave_what_runs_alone_leave(alone: list[Path], together: list[Path]) -> None:
    for mine, its in zip(together, alone, strict=True):
        assert sorted(p.name for p in mine.iterdir()) == sorted(p.name for p in its.iterdir())
        result, expected = (json.loads((path / "result.json").read_text()) for path in (mine, its))
        assert result.pop("vmap_seeds") == 2
        assert result.keys() == expected.keys()
        assert result["config"] == expected["config"]
        assert (result["updates"], result["eval_env_steps"]) == (STEPS - WARM_UP, [STEPS])
        np.testing.assert_allclose(result["eval_returns"], expected["eval_returns"], rtol=1e-3)
        assert len((mine / "metrics.jsonl").read_text().splitlines()) == STEPS // 50


def test_a_group_taken_up_at_a_checkpoint_equals_one_that_never_stopped(
    together: list[Path], tmp_path: Path
) -> None:
    paths = [shutil.copytree(path, tmp_path / path.name) for path in together]
    for path in paths:
        shutil.rmtree(path / "checkpoints" / f"{STEPS:010d}")
    members = [Member(config(seed), path, resume=True) for seed, path in enumerate(paths)]
    assert all(isinstance(end, Outcome) for end in outcomes(train_vmapped(members)).values())
    assert [fingerprint(path) for path in paths] == [fingerprint(path) for path in together]


def test_a_run_that_is_behind_catches_up_before_they_train_together(
    alone: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ahead = shutil.copytree(alone[0], tmp_path / "0")
    shutil.rmtree(ahead / "checkpoints" / f"{STEPS:010d}")
    stacked: list[int] = []
    update_vmapped = compiled.update_vmapped

    def watched(*arguments: Any) -> Any:
        stacked.append(int(arguments[-1]))
        return update_vmapped(*arguments)

    monkeypatch.setattr(compiled, "update_vmapped", watched)
    members = [Member(config(0), ahead, resume=True), Member(config(1), tmp_path / "1")]
    assert all(isinstance(end, Outcome) for end in outcomes(train_vmapped(members)).values())
    assert stacked == list(range(200 - WARM_UP, STEPS - WARM_UP, 4))
    for path, expected in zip((ahead, tmp_path / "1"), alone, strict=True):
        assert close(parameters(path), parameters(expected))


def faulty(fault: str, at: int) -> Callable[[], gym.Env]:
    """The first environment is tried out, the second is the first run's, the third the second's: it fails."""
    made = 0

    def make() -> gym.Env:
        nonlocal made
        made += 1
        return Faulty(fault, at) if made == 3 else make_env("Pendulum-P")

    return make


def test_a_nan_in_one_member_ends_that_one_alone(alone: list[Path], tmp_path: Path) -> None:
    members = [Member(config(seed, eval_every=0), tmp_path / str(seed)) for seed in range(2)]
    ends = outcomes(train_vmapped(members, make=faulty("huge reward", 50)))
    assert list(ends) == [1, 0]
    assert isinstance(ends[1], NonFiniteError)
    assert "train/critic_loss" in str(ends[1])
    assert isinstance(ends[0], Outcome)
    assert close(parameters(tmp_path / "0"), parameters(alone[0]))
    with RunDirectory(tmp_path / "1"):  # it is free, to be tried again
        pass


def test_who_is_left_alone_is_a_single_run_bit_for_bit(alone: list[Path], tmp_path: Path) -> None:
    members = [Member(config(seed), tmp_path / str(seed)) for seed in range(2)]
    ends = outcomes(train_vmapped(members, make=faulty("raise", 50)))
    assert isinstance(ends[1], EnvironmentFault)
    assert isinstance(ends[0], Outcome)
    assert fingerprint(tmp_path / "0") == fingerprint(alone[0])


def test_what_fails_for_all_is_said_of_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_memory(*arguments: Any) -> Any:
        raise RuntimeError("RESOURCE_EXHAUSTED")

    monkeypatch.setattr(compiled, "update_vmapped", no_memory)
    ends = outcomes(train_vmapped([Member(config(seed), tmp_path / str(seed)) for seed in range(2)]))
    assert [str(ends[seed]) for seed in range(2)] == ["RESOURCE_EXHAUSTED"] * 2


class SignalAt:
    """Asks this process to end when a run comes to a step."""

    def __init__(self, step: int):
        self.at = step

    def step(self, env_steps: int, last_return: float | None) -> None:
        if env_steps == self.at:
            os.kill(os.getpid(), signal.SIGTERM)

    def pretrained(self, updates: int, total: int) -> None: ...

    def evaluated(self, evaluation: Evaluation) -> None: ...

    def close(self) -> None: ...


def test_a_signal_saves_every_member(tmp_path: Path) -> None:
    paths = [tmp_path / str(seed) for seed in range(2)]
    members = [Member(config(0), paths[0]), Member(config(1), paths[1], progress=SignalAt(150))]
    with pytest.raises(Interrupted):
        list(train_vmapped(members))
    saved = [checkpoint.saved_steps(path / "checkpoints")[-1] for path in paths]
    assert saved[1] == 150
    assert 150 <= saved[0] <= 154  # it had gone on to its next round
    again = [Member(config(seed), path, resume=True) for seed, path in enumerate(paths)]
    assert all(isinstance(end, Outcome) for end in outcomes(train_vmapped(again)).values())


def test_what_cannot_begin_is_said_and_the_others_go_on(alone: list[Path], tmp_path: Path) -> None:
    with RunDirectory(tmp_path / "1"):
        ends = outcomes(train_vmapped([Member(config(seed), tmp_path / str(seed)) for seed in range(2)]))
    assert isinstance(ends[1], BusyError)
    assert fingerprint(tmp_path / "0") == fingerprint(alone[0])


def test_only_seeds_may_differ(tmp_path: Path) -> None:
    members = [Member(config(seed, log_every=50 + seed), tmp_path / str(seed)) for seed in range(2)]
    with pytest.raises(MulvError, match="these differ in log_every"):
        list(train_vmapped(members))
    assert not list(tmp_path.iterdir())


def test_every_key_draws_what_it_draws_alone() -> None:
    """Plain `rbg` does not: under vmap it draws for all keys from the first."""
    keys = jnp.stack([seeding.key(seed, Stream.UPDATE) for seed in range(3)])

    def draw(key: jax.Array) -> jax.Array:
        first, second = jax.random.split(jax.random.fold_in(key, 7))
        return jnp.stack([jax.random.normal(first, (5,)), jax.random.uniform(second, (5,))])

    alone = np.stack([draw(key) for key in keys])
    each = jax.vmap(lambda data: draw(compiled.key_of_each(data)))(jax.random.key_data(keys))
    np.testing.assert_array_equal(each, alone)
    assert not np.array_equal(jax.vmap(draw)(keys), alone)


@pytest.mark.slow
@pytest.mark.parametrize("algo", ALGORITHMS)
def test_stacked_updates_equal_separate_ones(algo: str) -> None:
    env = EnvSpec((64, 64, 3), 2, obs_dtype="uint8") if algo in SEE_FRAMES else EnvSpec((3,), 2)
    agent = algorithm(algo).agent(preset(algo, "default"), env)
    batches = tuple(random_batches(agent, 2, seed) for seed in range(3))
    keys = tuple(seeding.key(seed, Stream.UPDATE) for seed in range(3))

    def states() -> tuple[compiled.Packed, ...]:  # an update consumes them
        return tuple(compiled.init(agent, seeding.key(seed, Stream.INIT)) for seed in range(3))

    learned = compiled.update_vmapped(agent, states(), batches, keys, np.int32(5))
    for mine, state, batch, key in zip(learned, states(), batches, keys, strict=True):
        expected = compiled.update(agent, state, batch, key, np.int32(5))
        for leaf, its in zip(jax.tree.leaves(mine), jax.tree.leaves(expected), strict=True):
            np.testing.assert_allclose(leaf, its, rtol=1e-3, atol=1e-4)
