"""Configurations and runs of an older version: they are read as what today's options say.

Everything in tests/golden was written by that version. Its options were flat: `latent_dim`, not `latent.dim`.
"""

import copy
import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mulv
from mulv import cli
from mulv.agents import ALGORITHMS, preset
from mulv.bench.store import append, read_store
from mulv.bench.suite import Job
from mulv.bench.sweep import finished
from mulv.core.errors import MulvError
from mulv.run.config import RunConfig, config_hash, differences, from_json, to_json, with_run_options
from mulv.run.migration import migrate
from mulv.run.train import complete
from tests.run.support import ROOT

GOLDEN = Path(__file__).parents[1] / "golden"
NAMES = sorted(path.stem for path in (GOLDEN / "configs").glob("*.json"))


def of(algo: str = "mulv", name: str = "early", /, task: str = "Pendulum-P", **options: Any) -> RunConfig:
    """Today's configuration of a preset with options changed; `a__b` is the option a.b.

    The defaults of the older version are the preset `early`.
    """
    named = {option.replace("__", "."): value for option, value in options.items()}
    start = {
        option: named.pop(option) for option in ("data", "offline_updates", "total_steps") if option in named
    }
    config = RunConfig(task=task, algo=algo, agent=preset(algo, name), **start)
    return complete(with_run_options(config, {"learning_starts": 1000} | named))


TODAY = {
    "mulv": lambda: of(),
    "mulv-paper": lambda: of("mulv", "paper", "HalfCheetah-P"),
    "mulv-paper-code": lambda: of("mulv", "paper-code", "Pendulum-px"),
    "mulv-pixels": lambda: of("mulv", "pixels", "Pendulum-px", latent_projection=True),
    "mulv-lvrep": lambda: of("mulv", "early", "HalfCheetah-F", window=1),
    "mulv-bonus": lambda: of(
        task="MountainCarContinuous-P",
        collect="paper",
        bonus={"scale": 0.3, "limit": 5.0, "half_life": 2000.0, "rows": 4},
    ),
    "mulv-categorical": lambda: of(latent="categorical", latent__dim=32, latent__twins=False),
    "mulv-ridge": lambda: of(critic__ridge=0.01, critic__features=128, critic__family="fourier"),
    "mulv-greedy": lambda: of(task="Tiger", discrete_policy="greedy", discrete_policy__exploration_rate=0.2),
    "mulv-ddpg": lambda: of(
        policy="ddpg", policy__noise={"initial": 0.5, "final": 0.05, "steps": 5000, "clip": 0.2}
    ),
    "mulv-pink": lambda: of(pink_noise_octaves=7, seed=3, num_envs=2),
    "mulv-elbo": lambda: of(
        elbo={
            "weight": 1.0,
            "future": 2,
            "predict_changes": False,
            "decoder_depth": 0,
            "posterior": "learned",
            "kl_balance": 0.8,
            "free_nats": 1.0,
            "updates": 2,
        },
        latent__covariance="diagonal",
        latent__normalise=False,
    ),
    "mulv-image": lambda: of(task="Pendulum-px", image__embedding_dim=48),
    "sac": lambda: of("sac"),
    "sac-paper": lambda: of("sac", "paper", eval_every=0),
    "drqv2": lambda: of("drqv2", "default", "Pendulum-px"),
    "drqv2-paper": lambda: of("drqv2", "paper", "Pendulum-px"),
    "bc": lambda: of("bc", "default", data="runs/expert", offline_updates=500, total_steps=0),
}


def golden(name: str) -> dict[str, Any]:
    """A configuration as the older version wrote it."""
    return json.loads((GOLDEN / "configs" / f"{name}.json").read_text())["config"]


def test_every_golden_configuration_has_its_like_of_today() -> None:
    assert sorted(TODAY) == NAMES
    assert {golden(name)["algo"] for name in NAMES} == set(ALGORITHMS)


@pytest.mark.parametrize("name", NAMES)
def test_an_old_configuration_is_todays_of_the_same_options(name: str) -> None:
    assert from_json(golden(name)) == TODAY[name]()


@pytest.mark.parametrize("name", NAMES)
def test_an_old_configuration_has_the_hash_of_todays(name: str) -> None:
    assert config_hash(from_json(golden(name))) == config_hash(TODAY[name]())


@pytest.mark.parametrize("name", NAMES)
def test_what_was_migrated_is_not_migrated_again(name: str) -> None:
    today = to_json(TODAY[name]())
    assert migrate(today) == today
    assert migrate(migrate(golden(name))) == migrate(golden(name))


def test_migrating_leaves_what_it_was_given_as_it_was() -> None:
    saved = golden("mulv-ddpg")
    before = copy.deepcopy(saved)
    migrate(saved)
    assert saved == before


def test_old_and_new_configurations_differ_by_nothing_but_what_was_changed() -> None:
    changed = replace(TODAY["mulv-ridge"](), seed=5)
    assert [change.name for change in differences(golden("mulv-ridge"), changed)] == ["seed"]


def test_an_option_that_did_nothing_is_dropped() -> None:
    """Noise of a policy without noise, a bonus of weight zero, λ of a solve that is not made."""
    old = golden("mulv")
    agent = old["agent"] | {"noise_initial": 0.7, "bonus_limit": 9.0, "ridge": 0.5, "noise_samples": 3}
    assert from_json(old | {"agent": agent}) == TODAY["mulv"]()


@pytest.mark.parametrize(("clipped", "kind"), [(True, "lower"), (False, "mean")])
def test_clipped_double_q_is_now_a_kind(clipped: bool, kind: str) -> None:
    saved = to_json(TODAY["sac"]())
    agent = {name: value for name, value in saved["agent"].items() if name != "double_q"}
    read = from_json(saved | {"agent": agent | {"clipped_double_q": clipped}})
    assert read.agent.double_q == kind


def test_a_field_that_never_was_is_still_an_error() -> None:
    old = golden("mulv")
    with pytest.raises(MulvError, match="no field 'latent_dimm'"):
        from_json(old | {"agent": old["agent"] | {"latent_dimm": 3}})


def run_1() -> RunConfig:
    """Today's configuration of the golden run."""
    return of(
        total_steps=300,
        window=2,
        n_step=2,
        batch_size=8,
        trunk__width=16,
        trunk__depth=1,
        latent__dim=8,
        critic__features=16,
        learning_starts=100,
        eval_every=200,
        eval_episodes=2,
        checkpoint_every=200,
        log_every=100,
        keep_checkpoints=1,
    )


def test_a_result_line_of_an_older_version_is_not_run_again(tmp_path: Path) -> None:
    line = json.loads((GOLDEN / "run-1" / "result.json").read_text()) | {"suite": "old"}
    assert line["config_hash"] != config_hash(run_1())
    append(tmp_path, line)
    job = Job("old", "mulv", run_1())
    other = Job("old", "mulv", replace(run_1(), seed=1))
    assert finished(tmp_path, [job, other]) == {job.key: line}


def test_every_result_line_that_was_kept_is_still_read() -> None:
    lines = [line for line in read_store(ROOT / "results") if line["method"] != "random"]
    assert lines
    for line in lines:
        config = from_json(line["config"])
        assert (config.task, config.seed) == (line["task"], line["seed"])
        assert from_json(to_json(config)) == config


def test_an_option_that_is_gone_may_be_saved_as_off_and_not_as_on() -> None:
    saved = to_json(from_json({"task": "Pendulum-P", "algo": "mulv", "agent": {}}))
    saved["agent"]["elbo"]["hidden_rewards"] = 0.0
    assert "hidden_rewards" not in to_json(from_json(saved))["agent"]["elbo"]
    saved["agent"]["elbo"]["hidden_rewards"] = 0.5
    with pytest.raises(MulvError, match="hidden_rewards"):
        from_json(saved)


def test_an_old_run_is_loaded_and_acts_as_it_did() -> None:
    recorded = json.loads((GOLDEN / "run-1-actions.json").read_text())
    agent, memory, actions = mulv.load(GOLDEN / "run-1"), None, []
    for observation in recorded["observations"]:
        action, memory = agent.predict(np.asarray(observation), memory)
        actions.append(action)
    np.testing.assert_allclose(actions, recorded["actions"], atol=1e-5)


def test_an_old_run_goes_on_from_where_it_was(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = shutil.copytree(GOLDEN / "run-1", tmp_path / "run")
    with pytest.raises(SystemExit) as ended:
        cli.main(["train", "--resume", str(run), "--total-steps", "340", "--no-progress"])
    assert ended.value.code == 0
    assert f"resumed    {run / 'checkpoints' / '0000000300'}" in capsys.readouterr().out
    meta = json.loads((run / "checkpoints" / "0000000340" / "meta.json").read_text())
    assert meta["counters"] == {"env_steps": 340, "agent_steps": 340, "updates": 240, "offline_updates": 0}
    saved = json.loads((run / "config.json").read_text())["config"]
    assert (saved["agent"]["latent"]["dim"], saved["agent"]["critic"]["features"]) == (8, 16)
