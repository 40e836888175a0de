"""Runs and Minari datasets as a replay: masked, scaled, the same windows; bad data gets one line."""

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium as gym
import jax
import numpy as np
import pytest

from mulv.core.errors import MulvError
from mulv.core.spec import BatchSpec
from mulv.data import Replay, ReplayLayout
from mulv.data.episodes import Episode, fill, read_episodes, survey
from mulv.data.minari import write_minari
from mulv.envs import env_spec, make_env
from mulv.run.config import RunConfig
from mulv.run.offline.collect import CollectConfig, collect
from mulv.run.offline.dataset import open_dataset
from mulv.run.train import train
from tests.run.support import tiny

h5py = pytest.importorskip("h5py")
minari = pytest.importorskip("minari")

CUT = BatchSpec(batch_size=4, window=3, n_step=2, future=2, gamma=0.9)
FILE = "data/main_data.hdf5"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where Minari keeps its local datasets."""
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "minari"))
    return tmp_path / "minari"


def replay_of(name: str, directory: Path, task: str = "Pendulum-P") -> Replay:
    env = make_env(task)
    data = open_dataset(name, RunConfig(task=task), env)
    found = survey(data, env_spec(env))
    replay = Replay.create(
        directory, ReplayLayout.of(env_spec(env), lanes=1, capacity=found.rows(1), slack=0)
    )
    fill(replay, data, found)
    return replay


def all_windows(replay: Replay) -> list[np.ndarray]:
    return jax.tree.leaves(replay.cut(CUT, *replay.transitions(CUT.window)))


def episodes(number: int, length: int, seed: int = 0) -> list[Episode]:
    rng = np.random.default_rng(seed)
    return [
        Episode(
            rng.normal(size=(length + 1, 2)).astype(np.float32),
            rng.uniform(-1, 1, (length, 1)).astype(np.float32),
            rng.normal(size=length).astype(np.float32),
            terminated=bool(i % 2),
            truncated=not i % 2,
        )
        for i in range(number)
    ]


def save(name: str, some: list[Episode], env: gym.Env | None = None, env_id: str | None = None) -> None:
    env = env or make_env("Pendulum-P")
    write_minari(
        name,
        some,
        obs_space=env.observation_space,
        action_space=env.action_space,
        env_id=env_id,
        algorithm="noise",
        description="a test",
    )


def test_a_run_through_minari_gives_the_same_windows(tmp_path: Path) -> None:
    run = tmp_path / "run"
    train(tiny(total_steps=450, learning_starts=1000, eval_every=0), run, progress=False)
    own = Replay.open(run / "replay", mode="r")
    save("ours/pendulum-v0", list(read_episodes(own)), env_id="mulv/Pendulum-P-v0")
    there = replay_of(str(run), tmp_path / "there")
    back = replay_of("ours/pendulum-v0", tmp_path / "back")
    assert [len(leaf) for leaf in all_windows(own)[:1]] == [450]
    for a, b, c in zip(all_windows(own), all_windows(there), all_windows(back), strict=True):
        np.testing.assert_array_equal(a, b)
        np.testing.assert_array_equal(a, c)


def test_what_minari_collected_of_the_whole_pendulum_serves_the_masked_one(tmp_path: Path) -> None:
    env = minari.DataCollector(gym.make("Pendulum-v1", max_episode_steps=20))
    for seed in range(2):
        env.reset(seed=seed)
        for _ in range(20):
            env.step(env.action_space.sample())
    with warnings.catch_warnings(action="ignore"):  # Minari would like to know an author and more
        recorded = env.create_dataset("pendulum/noise-v0")
    got = list(read_episodes(replay_of("pendulum/noise-v0", tmp_path / "replay")))
    for mine, its in zip(got, recorded.iterate_episodes(), strict=True):
        np.testing.assert_array_equal(mine.obs, its.observations[:, :2])
        np.testing.assert_array_equal(mine.actions, its.actions / 2)  # torques go to 2, agents' actions to 1
        np.testing.assert_allclose(mine.rewards, its.rewards, rtol=1e-6)
        assert (mine.terminated, mine.truncated) == (False, True)
    assert open_dataset("pendulum/noise-v0", RunConfig(), make_env("Pendulum-P")).note == ""


def test_a_collected_dataset_that_hides_nothing_serves_a_task_that_does(tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    collect(CollectConfig("random", seen, steps=60, task="Pendulum-F", progress=False))
    whole, masked = (
        list(read_episodes(replay_of(str(seen), tmp_path / task, task)))
        for task in ("Pendulum-F", "Pendulum-P")
    )
    assert whole[0].obs.shape[1] == 3
    np.testing.assert_array_equal(masked[0].obs, whole[0].obs[:, :2])
    hidden = tmp_path / "hidden"
    collect(CollectConfig("random", hidden, steps=60, task="Pendulum-P", progress=False))
    with pytest.raises(MulvError, match="hides something that Pendulum-F shows"):
        replay_of(str(hidden), tmp_path / "x", "Pendulum-F")


def test_data_of_another_task_is_refused(tmp_path: Path) -> None:
    data = tmp_path / "data"
    collect(CollectConfig("random", data, steps=20, task="Pendulum-P", progress=False))
    for task in ("Hopper-P", "Pendulum-P-mbbl"):
        line = f"is of the task Pendulum-P, not of {task}"
        with pytest.raises(MulvError, match=line):
            open_dataset(str(data), RunConfig(task=task), make_env(task))
    with pytest.raises(MulvError, match="say --action-repeat 1"):
        open_dataset(str(data), RunConfig(action_repeat=2), make_env("Pendulum-P"))


def test_another_version_of_the_simulator_is_pointed_out(tmp_path: Path) -> None:
    save("elsewhere/noise-v0", episodes(1, 3), env_id="MountainCarContinuous-v0")
    note = open_dataset("elsewhere/noise-v0", RunConfig(), make_env("Pendulum-P")).note
    assert note == "it was recorded in MountainCarContinuous-v0, and the task's simulator is Pendulum-v1"


def test_a_dataset_can_be_collected_for_minari_once(tmp_path: Path) -> None:
    def make(out: str, name: str) -> None:
        collect(CollectConfig("random", tmp_path / out, 60, "Pendulum-P", minari=name, progress=False))

    make("first", "ours/noise-v0")
    own, back = (replay_of(name, tmp_path / name[-2:]) for name in (str(tmp_path / "first"), "ours/noise-v0"))
    for a, b in zip(all_windows(own), all_windows(back), strict=True):
        np.testing.assert_array_equal(a, b)
    for name, line in (("ours/noise-v0", "already"), ("no id at all", "cannot be a Minari dataset")):
        with pytest.raises(MulvError, match=line) as error:
            make("second", name)
        assert "\n" not in str(error.value)
    assert not (tmp_path / "second").exists()


def set_value(name: str, value: float) -> Callable[[Any], None]:
    def spoil(episode: Any) -> None:
        episode[name][1] = value

    return spoil


def shorten(name: str) -> Callable[[Any], None]:
    return lambda episode: episode[name].resize(3, axis=0)


@pytest.mark.parametrize(
    ("spoil", "line"),
    [
        (lambda episode: episode.pop("rewards"), "episode 1 lacks something"),
        (lambda episode: episode.pop("observations"), "episode 1 lacks something"),
        (set_value("observations", np.nan), "episode 1 has observations that are not finite at step 1"),
        (set_value("rewards", np.inf), "episode 1 has rewards that are not finite at step 1"),
        (set_value("actions", 3.0), r"episode 1 has an action of 3, outside \[-1, 1\]"),
        (shorten("actions"), "episode 1 has actions of shape"),
        (shorten("observations"), "episode 1 has observations of shape"),
        (shorten("terminations"), "episode 1 has rewards and ends of different lengths"),
        (set_value("terminations", True), "episode 1 goes on after it ended at step 2"),
    ],
)
def test_bad_data_gets_one_line_and_nothing_is_written(
    home: Path, tmp_path: Path, spoil: Callable[[Any], None], line: str
) -> None:
    save("bad/data-v0", episodes(3, 6))
    with h5py.File(home / "bad/data-v0" / FILE, "r+") as file:
        spoil(file["episode_1"])
    config = tiny(data="bad/data-v0", offline_updates=8, total_steps=0)
    with pytest.raises(MulvError, match=f"bad/data-v0: {line}") as error:
        train(config, tmp_path / "run", progress=False)
    assert "\n" not in str(error.value)
    assert not (tmp_path / "run").exists()


def test_a_damaged_or_missing_dataset_is_named(home: Path, tmp_path: Path) -> None:
    save("bad/data-v0", episodes(1, 3))
    (home / "bad/data-v0" / FILE).write_bytes(b"no such format")
    for name, line in (
        ("bad/data-v0", "episode 0 cannot be read"),
        ("bad/other-v0", "bad/other-v0 is no dataset: neither a run directory nor the id"),
    ):
        with pytest.raises(MulvError, match=line) as error:
            train(tiny(data=name, offline_updates=8, total_steps=0), tmp_path / "run", progress=False)
        assert "\n" not in str(error.value)
    assert not (tmp_path / "run").exists()
