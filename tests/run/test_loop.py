"""The loop keeps its counts, its metrics and its promises."""

import json
from dataclasses import replace
from pathlib import Path

import gymnasium as gym
import jax
import numpy as np
import pytest
from tensorboardX.proto.event_pb2 import Event

from mulv.agents import ALGORITHMS, preset
from mulv.core.errors import EnvironmentFault, MulvError, NonFiniteError
from mulv.core.spec import EnvSpec
from mulv.envs import make_env
from mulv.run import checkpoint, compiled
from mulv.run.config import RunConfig, from_json, to_json
from mulv.run.counters import crossed
from mulv.run.train import complete, train
from tests.run.support import TINY_AGENT, tiny


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("loop") / "run"
    train(tiny(total_steps=500, learning_starts=101, replay_ratio=2.0), path, progress=False)
    return path


def lines(path: Path) -> list[dict[str, float]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_counters_count_steps_decisions_and_updates(run: Path) -> None:
    last = lines(run / "metrics.jsonl")[-1]
    due = 2 * (500 - 101)
    assert (last["env_steps"], last["agent_steps"], last["updates"]) == (500, 500, due - due % 8)


def test_a_discount_that_is_left_to_the_task_is_the_same_for_a_step_of_the_simulator(tmp_path: Path) -> None:
    """0.995 a step, so 0.995² for dm_control's decisions of two; a discount that is given stays."""
    for algo in ("mulv", "sac"):
        for task, repeat, wanted in (
            ("HalfCheetah-P", None, 0.995),
            ("walker-run-P", None, 0.990025),
            ("walker-run-P", 1, 0.995),
        ):
            config = RunConfig(task=task, algo=algo, agent=preset(algo, "default"), action_repeat=repeat)
            assert complete(config).agent.gamma == pytest.approx(wanted, abs=1e-9)
            given = replace(config, agent=replace(config.agent, gamma=0.9))
            assert complete(given).agent.gamma == 0.9
    agent = ALGORITHMS["mulv"].agent(preset("mulv", "default"), EnvSpec((3,), 2))
    assert agent.batch_spec.gamma == 0.995  # nobody said how long a decision lasts


def test_action_repeat_counts_simulator_steps(tmp_path: Path) -> None:
    train(tiny(total_steps=400, action_repeat=2, eval_every=0), tmp_path / "run", progress=False)
    last = lines(tmp_path / "run" / "metrics.jsonl")[-1]
    assert (last["env_steps"], last["agent_steps"], last["updates"]) == (400, 200, 148)


def test_metric_names_are_stable_baselines_own(run: Path) -> None:
    names = set(lines(run / "metrics.jsonl")[-1])
    assert {"rollout/ep_rew_mean", "rollout/ep_len_mean", "time/fps", "train/critic_loss"} <= names
    assert {"train/actor_loss", "train/ent_coef", "env_steps", "agent_steps", "updates"} <= names


def test_evaluations_npz_has_stable_baselines_keys_and_every_episode(run: Path) -> None:
    records = lines(run / "evaluations.jsonl")
    assert [r["env_steps"] for r in records] == [400, 500]
    with np.load(run / "evaluations.npz") as saved:
        assert sorted(saved.files) == ["ep_lengths", "results", "timesteps"]
        np.testing.assert_array_equal(saved["results"], [r["returns"] for r in records])
        assert saved["results"].shape == (2, 2)
        assert (saved["ep_lengths"] == 200).all()


def test_tensorboard_events_hold_what_the_lines_hold(run: Path) -> None:
    (file,) = (run / "tensorboard").iterdir()
    data, at, scalars = file.read_bytes(), 0, []
    while at < len(data):  # TFRecord: length, its checksum, payload, its checksum
        size = int.from_bytes(data[at : at + 8], "little")
        event = Event.FromString(data[at + 12 : at + 12 + size])
        scalars += [(event.step, v.tag, v.simple_value) for v in event.summary.value]
        at += 16 + size
    expected = [
        (line["env_steps"], "train/critic_loss", np.float32(line["train/critic_loss"]))
        for line in lines(run / "metrics.jsonl")
        if "train/critic_loss" in line
    ]
    assert [s for s in scalars if s[1] == "train/critic_loss"] == expected
    assert len(expected) > 5


def test_the_result_line_has_every_field(run: Path) -> None:
    result = json.loads((run / "result.json").read_text())
    assert result["final_mean"] == pytest.approx(np.mean(lines(run / "evaluations.jsonl")[-1]["returns"]))
    assert result["eval_env_steps"] == [400, 500]
    assert result["config"]["agent"]["window"] == 2
    assert result["versions"]["jax"] == jax.__version__
    expected = "suite method task seed env_steps updates eval_env_steps eval_returns eval_success final_mean"
    assert set(result) == {*expected.split(), "config", "config_hash", "commit", "versions", "wall_s"}


def test_parallel_environments_store_whole_episodes(tmp_path: Path) -> None:
    train(tiny(total_steps=1200, num_envs=3, eval_every=0), tmp_path / "run", progress=False)
    steps = np.fromfile(tmp_path / "run" / "replay" / "step.bin", np.int32).reshape(-1, 3)[:402]
    np.testing.assert_array_equal(steps, np.tile(np.arange(201), 2)[:, None].repeat(3, axis=1))
    obs = np.fromfile(tmp_path / "run" / "replay" / "obs.bin", np.float32).reshape(-1, 3, 2)[:402]
    assert len(np.unique(obs[0], axis=0)) == 3  # every lane has a seed of its own
    assert 0 <= (1200 - 100) - lines(tmp_path / "run" / "metrics.jsonl")[-1]["updates"] < 4


def test_worker_processes_give_the_same_run_as_this_process(tmp_path: Path) -> None:
    for name, workers in (("here", False), ("there", True)):
        config = tiny(total_steps=300, num_envs=2, env_workers=workers, eval_every=0)
        train(config, tmp_path / name, progress=False)
    here, there = ((tmp_path / n / "replay" / "obs.bin").read_bytes() for n in ("here", "there"))
    assert here == there


def test_evaluation_does_not_disturb_training(tmp_path: Path) -> None:
    for every in (0, 100):
        train(tiny(total_steps=400, eval_every=every), tmp_path / str(every), progress=False)
    arrays = [np.load(tmp_path / str(e) / "checkpoints" / "0000000400" / "arrays.npz") for e in (0, 100)]
    assert all(arrays[0][name].tobytes() == arrays[1][name].tobytes() for name in arrays[0].files)


def test_compiled_functions_are_shared_by_equal_agents(tmp_path: Path) -> None:
    train(tiny(total_steps=300, eval_every=0), tmp_path / "first", progress=False)
    compiles = compiled.update._cache_size(), compiled.act._cache_size()
    train(tiny(total_steps=300, eval_every=0, seed=5), tmp_path / "second", progress=False)
    assert (compiled.update._cache_size(), compiled.act._cache_size()) == compiles


class Faulty(gym.Wrapper):
    """Pendulum that goes wrong at a chosen step."""

    def __init__(self, fault: str, at: int):
        super().__init__(make_env("Pendulum-P"))
        self.fault, self.at, self.count = fault, at, 0

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict[str, object]]:
        obs, reward, terminated, truncated, info = self.env.step(action)
        self.count += 1
        if self.count == self.at:
            if self.fault == "observation":
                obs = obs * np.nan
            elif self.fault == "reward":
                reward = float("inf")
            elif self.fault == "huge reward":  # finite itself, but its square is not
                reward = 1e30
            else:
                raise ValueError("the motor burnt out")
        return obs, float(reward), terminated, truncated, info


def checkpoints_are_finite(path: Path) -> bool:
    newest = path / "checkpoints" / f"{checkpoint.saved_steps(path / 'checkpoints')[-1]:010d}"
    with np.load(newest / "arrays.npz") as arrays:
        return all(np.isfinite(arrays[name]).all() for name in arrays.files)


@pytest.mark.parametrize("fault", ["observation", "reward"])
def test_nan_from_the_environment_stops_the_run_and_is_named(tmp_path: Path, fault: str) -> None:
    config = tiny(task="faulty", eval_every=0)
    with pytest.raises(NonFiniteError, match=f"non-finite {fault} at step 50 of episode 3"):
        train(config, tmp_path / "run", make=lambda: Faulty(fault, 450), progress=False)
    assert checkpoints_are_finite(tmp_path / "run")


def test_nan_in_an_update_stops_before_the_next_round_and_names_the_tensors(tmp_path: Path) -> None:
    """A reward that overflows the loss is drawn sooner or later; from that update on nothing is learned."""
    config = tiny(task="faulty", eval_every=0, total_steps=2000)
    with pytest.raises(NonFiniteError) as error:
        train(config, tmp_path / "run", make=lambda: Faulty("huge reward", 450), progress=False)
    assert "train/critic_loss" in str(error.value)
    updates = int(str(error.value).split("at update ")[1].split(",")[0])
    steps = int(str(error.value).split("env step ")[1].split(";")[0])
    assert 0 <= (steps - 100) - updates < 4  # the bad update is of the last round; none followed
    assert checkpoints_are_finite(tmp_path / "run")


def test_an_environment_that_raises_is_reported_with_its_own_error(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentFault, match="ValueError: the motor burnt out") as error:
        train(tiny(task="faulty"), tmp_path / "run", make=lambda: Faulty("raise", 50), progress=False)
    assert isinstance(error.value.__cause__, ValueError)


def test_a_broken_environment_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentFault, match="motor"):
        train(tiny(task="faulty"), tmp_path / "run", make=lambda: Faulty("raise", 1), progress=False)
    assert not (tmp_path / "run").exists()


def test_too_small_a_disk_is_refused_before_the_first_step(tmp_path: Path) -> None:
    huge = tiny(total_steps=10**13, replay_capacity=10**13, checkpoint_every=10**9)
    with pytest.raises(MulvError, match=r"replay needs [\d.]+ GB"):
        train(huge, tmp_path / "run", progress=False)
    assert not list(tmp_path.glob("run/replay/*.bin"))


@pytest.mark.parametrize("algo", ALGORITHMS)
def test_configs_survive_json(algo: str) -> None:
    for agent in ALGORITHMS[algo].presets.values():
        data = {"data": "somewhere", "offline_updates": 100} if ALGORITHMS[algo].copies_data else {}
        config = complete(RunConfig(algo=algo, agent=agent, **data))
        assert from_json(json.loads(json.dumps(to_json(config)))) == config


def test_a_run_explores_by_noise_that_lasts_and_evaluates_without(tmp_path: Path, monkeypatch) -> None:
    act, seen = compiled.act, []

    def noted(*arguments, **options):
        seen.append((int(arguments[6]), options["deterministic"], arguments[3].shape[0]))
        return act(*arguments, **options)

    monkeypatch.setattr(compiled, "act", noted)
    agent = replace(TINY_AGENT, pink_noise_octaves=3)
    config = tiny(agent=agent, total_steps=300, num_envs=2, eval_every=300, eval_episodes=3)
    train(config, tmp_path / "run", progress=False)
    exploring = [step for step, deterministic, lanes in seen if (lanes, deterministic) == (2, False)]
    assert exploring == list(range(50, 150))  # after the uniform actions; a step of both lanes is one
    assert {deterministic for _, deterministic, lanes in seen if lanes == 3} == {True}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"sed": 1}, "did you mean 'seed'"),
        ({"agent": {"windw": 3}}, "did you mean 'window'"),
        ({"agent": {"window": 0}}, "window is 0"),
        ({"agent": {"gamma": 2.0}}, "gamma is 2.0"),
        ({"agent": {"pink_noise_octaves": 0}}, "pink_noise_octaves is 0"),
        ({"agent": {"pink_noise_octaves": 40}}, "pink_noise_octaves is 40; it must lie between 1 and 20"),
        ({"seed": "one"}, "seed is 'one'"),
        ({"total_steps": -5}, "total_steps is -5"),
        ({"num_envs": 100_000}, "num_envs is 100000; it must lie between 1 and 1024"),
        ({"replay_ratio": float("inf")}, "replay_ratio is inf; it must be finite"),
        ({"agent": {"trunk": {"kind": "transformer"}}}, "kind is 'transformer'"),
        ({"algo": "sak"}, "did you mean 'sac'"),
    ],
)
def test_a_bad_config_says_what_is_wrong(change: dict[str, object], message: str) -> None:
    with pytest.raises(MulvError, match=message):
        from_json(change)


def test_crossed_finds_multiples_in_half_open_intervals() -> None:
    for before in range(30):
        for after in range(before, 30):
            expected = any(k % 7 == 0 for k in range(before + 1, after + 1))
            assert crossed(before, after, 7) == expected
    assert not crossed(0, 100, 0)
