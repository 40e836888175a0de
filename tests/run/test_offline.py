"""Runs on data: they take no step, resume bit for bit, and go on in the environment with what they have."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from mulv import cli
from mulv.agents.mulv.config import MuLVConfig
from mulv.agents.sac import SACConfig
from mulv.bench.compare import read_results
from mulv.bench.lines import parse_line
from mulv.bench.runs import to_runs
from mulv.cli.offline import parse_collect, parse_offline, with_penalty
from mulv.core.errors import MulvError
from mulv.core.options import with_options
from mulv.core.spec import EnvSpec
from mulv.data import Replay, ReplayLayout
from mulv.data.episodes import Dataset, Episode, fill, read_episodes, survey
from mulv.run.config import RunConfig
from mulv.run.offline.collect import CollectConfig, collect
from mulv.run.train import train
from tests.run.support import fingerprint, tiny

UPDATES = 40


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Episodes of a random pendulum, the last ones cut off."""
    path = tmp_path_factory.mktemp("data") / "random"
    collect(CollectConfig("random", path, steps=900, task="Pendulum-P", progress=False))
    return path


def offline(data: Path, **changes: object) -> RunConfig:
    options = {
        "data": str(data),
        "offline_updates": UPDATES,
        "total_steps": 0,
        "learning_starts": 0,
        "eval_every": 32,
        "eval_episodes": 1,
        "log_every": 8,
        "checkpoint_every": 8,
        "keep_checkpoints": 9,
    }
    return tiny(**{**options, **changes})


@pytest.fixture(scope="module")
def run(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("offline") / "run"
    train(offline(data), path, progress=False)
    return path


def lines(path: Path) -> list[dict[str, float]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_only_updates_are_counted_and_no_step_is_taken(run: Path, data: Path) -> None:
    last = lines(run / "metrics.jsonl")[-1]
    names = ("env_steps", "agent_steps", "updates", "offline_updates")
    assert [last[name] for name in names] == [0, 0, UPDATES, UPDATES]
    own, given = (Replay.open(path / "replay", mode="r") for path in (run, data))
    assert own.counts.tolist() == given.counts.tolist()
    for mine, its in zip(read_episodes(own), read_episodes(given), strict=True):
        assert all(np.array_equal(a, b) for a, b in zip(mine, its, strict=True))


def test_evaluations_and_checkpoints_go_by_updates(run: Path) -> None:
    assert [line["updates"] for line in lines(run / "evaluations.jsonl")] == [32, 40]
    with np.load(run / "evaluations.npz") as saved:
        assert saved["timesteps"].tolist() == [32, 40]
    assert sorted(int(path.name) for path in (run / "checkpoints").iterdir()) == [8, 16, 24, 32, 40]


def test_the_result_line_names_the_data_and_is_one(run: Path, data: Path) -> None:
    text = (run / "result.json").read_text()
    result = parse_line(text, "result.json")
    assert result["config"]["data"] == str(data)
    assert (result["env_steps"], result["updates"], result["eval_updates"]) == (0, 40, [32, 40])
    kept = json.loads((data / "collected.json").read_text())
    assert result["dataset"]["sha256"] == kept["sha256"]
    assert (result["dataset"]["steps"], result["dataset"]["episodes"]) == (900, len(kept["lengths"]))
    (drawn,) = to_runs([result])
    assert (drawn.env_steps, drawn.steps.tolist()) == (40, [32, 40])
    for broken in ({"eval_updates": [40, 40]}, {"eval_updates": None}):
        with pytest.raises(MulvError, match="eval_updates does not grow"):
            parse_line(json.dumps({**result, **broken}), "result.json")


def test_runs_on_data_are_not_drawn_beside_runs_of_steps(run: Path, tmp_path: Path) -> None:
    result = json.loads((run / "result.json").read_text())
    steps = {"env_steps": 40, "eval_env_steps": result.pop("eval_updates")}
    (tmp_path / "result.json").write_text(json.dumps(result | steps))
    assert len(read_results([run, run])) == 2
    with pytest.raises(MulvError, match="some from steps"):
        read_results([run, tmp_path])


def test_a_stopped_run_resumes_bit_for_bit_without_its_dataset(run: Path, data: Path, tmp_path: Path) -> None:
    moved = tmp_path / "moved"
    shutil.copytree(data, moved)
    path, config = tmp_path / "run", offline(moved)
    train(config, path, progress=False)
    shutil.rmtree(moved)
    for step in (24, 32, 40):
        shutil.rmtree(path / "checkpoints" / f"{step:010d}")
    train(config, path, progress=False, resume=True)
    assert fingerprint(path) == fingerprint(run)


def test_a_run_on_data_goes_on_in_the_environment_with_the_data_in_its_replay(
    run: Path, data: Path, tmp_path: Path
) -> None:
    path, online = tmp_path / "run", 216
    shutil.copytree(run, path)
    longer = offline(data, total_steps=online)
    train(longer, path, progress=False, resume=True)
    train(longer, tmp_path / "at-once", progress=False)
    replay = Replay.open(path / "replay", mode="r")
    data_rows = int(Replay.open(data / "replay", mode="r").counts[0])
    assert replay.counts[0] == data_rows + online + 2  # an episode ends at 200, so there are two resets
    step = replay.column("step", 0, np.arange(replay.counts[0]))
    assert list(np.flatnonzero(step == 0)[-2:] - data_rows) == [0, 201]
    last = lines(path / "metrics.jsonl")[-1]
    assert (last["env_steps"], last["offline_updates"], last["updates"]) == (216, 40, 40 + 216)
    assert "rollout/ep_rew_mean" in last
    grown, at_once = (fingerprint(p) for p in (path, tmp_path / "at-once"))
    # The run that ended in between evaluated itself there; all else is the same.
    assert all(grown[part] == at_once[part] for part in grown.keys() - {"evaluations"})


def test_one_step_episodes_are_learned_from(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    short = [
        Episode(rng.normal(size=(2, 2)), rng.uniform(-1, 1, (1, 1)), rng.normal(size=1), True, False)
        for _ in range(12)
    ]
    made, spec = Dataset("short", lambda: iter(short)), EnvSpec((2,), 1)
    replay = Replay.create(tmp_path / "replay", ReplayLayout.of(spec, lanes=1, capacity=24, slack=0))
    fill(replay, made, survey(made, spec))
    record = {"task": "Pendulum-P", "keep": None, "action_repeat": 1}
    (tmp_path / "collected.json").write_text(json.dumps(record))
    outcome = train(offline(tmp_path, eval_every=0), tmp_path / "run", progress=False)
    assert outcome.result["updates"] == UPDATES
    last = lines(tmp_path / "run" / "metrics.jsonl")[-1]
    rewards = np.concatenate([episode.rewards for episode in short])
    assert rewards.min() < last["train/target_mean"] < rewards.max()  # nothing is bootstrapped


def test_the_penalty_is_a_bonus_of_the_other_sign_where_there_is_one() -> None:
    lower = with_options(MuLVConfig(), {"bonus.scale": 0.5, "bonus.use": "pessimism"})
    assert with_penalty(MuLVConfig(), 0.5) == lower
    assert with_penalty(SACConfig(), 0.0) == SACConfig()
    with pytest.raises(MulvError, match="SACConfig has no penalty to weigh; use --alpha 0"):
        with_penalty(SACConfig(), 0.5)
    with pytest.raises(MulvError, match="must not be negative"):
        with_penalty(MuLVConfig(), -0.5)


def test_the_command_takes_no_step_unless_told() -> None:
    options = parse_offline(["--data", "D", "--steps", "70", "--algo", "sac", "--window", "5"])
    config = options.config
    assert (config.data, config.offline_updates, config.total_steps) == ("D", 70, 0)
    assert (config.learning_starts, config.agent.window) == (0, 5)
    assert parse_collect(["--data", "D"]) is None


@pytest.mark.parametrize("given", [["--collect", "paper"], ["--collect=paper"]])
def test_how_steps_are_collected_after_the_data_is_no_kind_of_dataset(given: list[str]) -> None:
    arguments = ["--data", "D", "--total-steps", "50", *given]
    assert parse_collect(arguments) is None
    assert parse_offline(arguments).config.collect == "paper"


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["offline"], "say what to learn from with --data DATASET"),
        (["offline", "--data", "nowhere"], "nowhere is no"),
        (["offline", "--data", "DATA", "--task", "Hopper-P"], "is of the task Pendulum-P, not of Hopper-P"),
        (["offline", "--data", "DATA", "--algo", "bc", "--total-steps", "9"], "bc copies recorded actions"),
        (["offline", "--data", "DATA", "--algo", "sac", "--alpha", "1"], "use --alpha 0"),
        (["offline", "--data", "DATA", "--steps", "-1"], "offline_updates is -1"),
        (["train", "--algo", "bc"], "use mulv offline --algo bc --data DATASET"),
        (["train", "--offline-updates", "9"], "say which with --data"),
        (["offline", "--collect", "random", "--out", "new"], "say which --task"),
        (["offline", "--collect", "expert", "--out", "new"], "say which with --from RUN"),
        (["offline", "--collect", "random", "--task", "Pendulum-P", "--out", "DATA"], "already exists"),
        (["offline", "--collect", "expert", "--from", "DATA", "--out", "new"], "is not a run directory"),
    ],
)
def test_bad_input_gets_one_line_and_nothing_is_written(
    arguments: list[str],
    line: str,
    data: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "minari"))
    with pytest.raises(SystemExit) as exit_:
        cli.main([str(data) if argument == "DATA" else argument for argument in arguments])
    error = capsys.readouterr().err
    assert exit_.value.code == 1
    assert error.startswith("mulv: error: ")
    assert line in error
    assert error.count("\n") == 1
    assert not (tmp_path / "runs").exists()
    assert not (tmp_path / "new").exists()


def test_bc_learns_from_data_alone(data: Path) -> None:
    with pytest.raises(MulvError, match="copies recorded actions"):
        replace(parse_offline(["--data", str(data), "--algo", "bc"]).config, total_steps=100)
