"""Suites: what their runs are, that they fit their promises, and what a person's own may say."""

import json
from pathlib import Path

import pytest

from mulv.bench import estimate
from mulv.bench.suite import Job, Method, Suite, read_suite
from mulv.bench.suites import SUITES, find_suite
from mulv.core.errors import MulvError
from mulv.run.config import Change, differences, to_json, with_run_options
from tests.bench.sweeps import write_suite

READY = [suite for suite in SUITES.values() if not suite.lacks()]


def configs(suite: Suite) -> dict[tuple[str, str, int], Job]:
    return {(job.method, job.config.task, job.config.seed): job for job in suite.jobs()}


@pytest.mark.parametrize("suite", READY, ids=lambda suite: suite.name)
def test_every_run_is_of_its_own(suite: Suite) -> None:
    jobs = suite.jobs()
    assert len(jobs) == suite.runs == len({job.key for job in jobs})
    assert {job.config.seed for job in jobs} == set(suite.seeds)
    assert all(job.config.eval_every for job in jobs)


def test_masked_control_is_the_papers_table() -> None:
    jobs = configs(SUITES["masked-control"])
    assert len(jobs) == 10 * 3 * 4
    assert {job.steps for job in jobs.values()} == {200_000}
    best_fo = jobs["lvrep", "HalfCheetah-F", 0].config
    assert (best_fo.algo, best_fo.agent.window) == ("mulv", 1)
    assert ("mulv", "HalfCheetah-P", 3) in jobs
    mbbl = configs(SUITES["masked-control-mbbl"])
    assert ("lvrep", "Walker-F-mbbl", 0) in mbbl
    assert ("sac", "Walker-P-mbbl", 0) in mbbl


def test_a_seed_of_everything_comes_before_the_next() -> None:
    seeds = [job.config.seed for job in SUITES["masked-control"].jobs()]
    assert seeds == sorted(seeds)


def seconds(task: str = "Pendulum-P", algo: str = "mulv", **options: float) -> float:
    """The estimate of 10 000 steps, but for the start."""
    methods = {"method": Method(algo, {"eval_every": 0, **options})}
    jobs = Suite("s", "", (task,), methods, steps=10_000, seeds=(0,)).jobs()
    return estimate.seconds(jobs[0]) - estimate.START_SECONDS


def test_a_run_takes_as_long_as_its_updates() -> None:
    assert seconds(replay_ratio=4.0) == pytest.approx(4 * seconds())
    assert seconds(action_repeat=2) == pytest.approx(seconds() / 2)


def test_a_run_takes_longer_by_the_decisions_of_its_evaluations() -> None:
    """Every 3000 steps and at the end: four of five episodes, each of 200 steps of the simulator."""
    longer = {"eval_every": 3000, "eval_episodes": 5}
    assert seconds(**longer) - seconds() == pytest.approx(4 * 5 * 200 / estimate.EVALUATION_RATE)
    twice = {"action_repeat": 2}
    assert seconds(**longer, **twice) - seconds(**twice) == pytest.approx(
        4 * 5 * 100 / estimate.EVALUATION_RATE
    )


def test_frames_and_a_representation_cost_more() -> None:
    assert seconds(algo="sac") < seconds(algo="mulv")
    assert seconds("Pendulum-P", action_repeat=2) < seconds("Pendulum-px", action_repeat=2)


def test_two_cores_finish_the_quick_suite_within_the_hour() -> None:
    jobs = SUITES["quick"].jobs()
    assert sum(map(estimate.seconds, jobs)) / 2 < 3600
    assert len({job.config.seed for job in jobs}) >= 3


@pytest.mark.parametrize(
    ("name", "variant"),
    [
        ("quick", ""),
        ("masked-control", ""),
        ("masked-control-early", ""),
        ("positions-30k", ""),
        ("positions-30k", "/gamma-0.99"),
        ("scale-30k", "/scaled"),
    ],
)
def test_sac_has_what_mulv_has_but_the_representation(name: str, variant: str) -> None:
    jobs = configs(SUITES[name])
    mulv, sac = (
        to_json(jobs[algo + variant, "Hopper-P", SUITES[name].seeds[0]].config) for algo in ("mulv", "sac")
    )
    shared = sac["agent"].keys() & mulv["agent"].keys()
    assert {k: sac["agent"][k] for k in shared} == {k: mulv["agent"][k] for k in shared}
    assert all(sac[k] == mulv[k] for k in sac.keys() - {"agent", "algo"})


@pytest.mark.parametrize(
    ("suite", "method", "change"),
    [
        ("ablate-window", "mulv/window-5", Change("agent.window", 3, 5)),
        ("ablate-latent", "mulv/latent-2048", Change("agent.latent.dim", 128, 2048)),
        ("ablations-20k", "mulv/family-relu", Change("agent.critic.family", "fourier", "relu")),
        ("scale-30k", "mulv/scaled", Change("agent.scale_rewards", False, True)),
    ],
)
def test_a_variant_changes_what_its_name_says(suite: str, method: str, change: Change) -> None:
    default = {"ablate-window": "mulv/window-3", "ablate-latent": "mulv/latent-128"}.get(suite, "mulv")
    chosen = SUITES[suite].chosen(tasks=["HalfCheetah-P"], seeds=1)
    jobs = {job.method: job.config for job in chosen.jobs()}
    assert differences(jobs[default], jobs[method]) == [change]


def test_exploration_compares_a_bonus_with_none_on_every_task() -> None:
    jobs = configs(SUITES["exploration"])
    for task in SUITES["exploration"].tasks:
        without, with_bonus = jobs["mulv/no-bonus", task, 0].config, jobs["mulv", task, 0].config
        assert without.agent.bonus is None
        assert with_bonus.agent.bonus.scale == 2.0
        # Entropy is what the other explores by.
        kinds = [config.agent.discrete_policy.kind for config in (without, with_bonus)]
        assert kinds == ["soft", "greedy"]
        same = {"bonus": None, "discrete_policy": "soft"}
        assert with_run_options(with_bonus, same) == without


def test_some_tasks_have_options_of_their_own_under_those_of_a_method() -> None:
    suite = Suite(
        "s",
        "",
        tasks=("Tiger", "Lock"),
        methods={"mulv": Method("mulv"), "mulv/wide": Method("mulv", {"trunk.width": 8})},
        steps=10,
        seeds=(0,),
        options={"window": 2, "n_step": 2},
        options_of={"Lock": {"window": 4, "trunk.width": 16}},
    )
    agents = {(job.method, job.config.task): job.config.agent for job in suite.jobs()}
    assert [(a.window, a.n_step, a.trunk.width) for a in agents.values()] == [
        (2, 2, 256),
        (2, 2, 8),
        (4, 2, 16),
        (4, 2, 8),
    ]


def test_a_part_of_a_suite() -> None:
    part = SUITES["ablations-20k"].chosen(methods=["mulv/l-5"], seeds=3, steps=700)
    assert [(job.method, job.config.seed, job.steps) for job in part.jobs()] == [
        ("mulv/l-5", seed, 700) for seed in (100, 101, 102)
    ]
    assert {job.steps for job in SUITES["quick"].chosen(steps=900).jobs()} == {900}


def test_metaworld_has_fifty_tasks_and_says_what_is_lacking() -> None:
    suite = SUITES["metaworld-50"]
    assert len(set(suite.tasks)) == 50
    with pytest.raises(MulvError, match=r"cannot run yet: mulv lacks the algorithms dreamer, mwm"):
        suite.jobs()


def test_offline_runs_have_their_tasks_data_and_count_updates() -> None:
    jobs = SUITES["offline"].chosen(tasks=["Hopper-P"], seeds=1).jobs()
    assert [(job.method, job.config.algo) for job in jobs] == [
        ("mulv", "mulv"),
        ("mulv/no-penalty", "mulv"),
        ("bc", "bc"),
    ]
    penalty, none = (job.config.agent for job in jobs[:2])
    assert (penalty.bonus.use, penalty.bonus.scale > 0, none.bonus) == ("pessimism", True, None)
    for config in (job.config for job in jobs):
        assert config.data == "datasets/Hopper-P/medium-replay"
        assert (config.offline_updates, config.total_steps, config.learning_starts) == (10_000, 0, 0)
    assert {(job.steps, job.config.eval_every) for job in jobs} == {(10_000, 1000)}


def test_a_suite_of_ones_own(tmp_path: Path) -> None:
    suite = read_suite(write_suite(tmp_path))
    assert (suite.name, suite.seeds) == ("tiny", (0, 1))
    job = configs(suite)["sac/n-step-2", "Pendulum-P", 1]
    assert (job.config.agent.n_step, job.config.agent.trunk.width) == (2, 16)
    assert Job.from_json(json.loads(json.dumps(job.to_json()))) == job


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"methods": {"sac": {"algo": "sak"}}}, "no algorithm is called 'sak'; did you mean 'sac'?"),
        ({"tasks": ["Pendulumm-P"]}, "did you mean 'Pendulum-P'?"),
        ({"options": {"windo": 3}}, "no field 'windo'; did you mean 'window'?"),
        ({"options": {"window": "3"}}, "window is '3'"),
        ({"options": {"window.x": 3}}, "window is a single value"),
        ({"options": {"seed": 3}}, "seed is no option"),
        ({"options": {"data": "somewhere"}}, "data is no option"),
        ({"taks": []}, "no field of a suite is called 'taks'; did you mean 'tasks'?"),
        ({"methods": {"../sac": {"algo": "sac"}}}, "cannot be a name"),
        ({"options_of": {"Pendulum": {}}}, "is called 'Pendulum'; did you mean 'Pendulum-P'?"),
        ({"steps": "many"}, "whole numbers of steps"),
        ({"steps": -5}, "whole numbers of steps"),
        ({"seeds": 0}, "it needs tasks, methods, seeds"),
        ({"methods": ["sac"]}, "is not a suite"),
    ],
)
def test_a_bad_suite_gets_one_clear_line(tmp_path: Path, changes: dict[str, object], line: str) -> None:
    path = write_suite(tmp_path, **changes)
    with pytest.raises(MulvError) as error:
        find_suite(str(path)).jobs()
    assert line in str(error.value)
    assert "\n" not in str(error.value)


def test_a_file_that_is_no_suite(tmp_path: Path) -> None:
    with pytest.raises(MulvError, match="cannot be read: No such file"):
        find_suite(str(tmp_path / "absent.json"))
    (tmp_path / "list.json").write_text("[1, 2]")
    with pytest.raises(MulvError, match="is not a suite"):
        find_suite(str(tmp_path / "list.json"))


def test_calibration_gives_both_methods_all_but_the_representation():
    """Same window, backup, discount, scales and length; and dm_control's actions are taken twice."""
    jobs = configs(SUITES["calibrate-100k"])
    shared = ("window", "n_step", "gamma", "scale_rewards", "encode_changes", "batch_size")
    for variant, ending, window in (("full", "-F", 1), ("window-3", "-P", 3), ("window-8", "-P", 8)):
        for task, repeat in (("HalfCheetah", 1), ("walker-run", 2)):
            mulv, sac = (jobs[f"{algo}/{variant}", task + ending, 100].config for algo in ("mulv", "sac"))
            assert [getattr(mulv.agent, n) for n in shared] == [getattr(sac.agent, n) for n in shared]
            assert mulv.agent.trunk == sac.agent.trunk
            assert (mulv.agent.window, mulv.action_repeat, mulv.learning_starts) == (window, repeat, 5000)
