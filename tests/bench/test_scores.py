"""Runs from result lines, and their returns on one scale."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mulv.bench.published import ceiling, random_return
from mulv.bench.runs import by_label, by_suite, to_runs
from mulv.bench.scores import SHARES, Scale, comparable, final_scores, scale, scales, score_curves
from tests.bench.support import result


def test_random_actions_score_zero_and_the_ceiling_one():
    zero, one = random_return("Hopper-P"), ceiling("Hopper-P").best
    runs = to_runs(
        [result(task="Hopper-P", seed=i, final=f) for i, f in enumerate((zero, one, (zero + one) / 2))]
    )
    np.testing.assert_allclose(final_scores(runs, scale(runs)), [0.0, 1.0, 0.5])


def test_without_a_ceiling_the_best_method_is_one():
    lines = [result("mulv", "Pendulum-P", s, final=f) for s, f in ((0, -100.0), (1, -200.0))]
    runs = to_runs([*lines, result("sac", "Pendulum-P", final=-1000.0)])
    assert scale(runs) == Scale(random_return("Pendulum-P"), -150.0, "best here")


def test_the_older_benchmarks_rewards_have_the_papers_full_observation_as_one():
    assert scale(to_runs([result(task="Hopper-P-mbbl")])).one == 2204.8


def test_nothing_better_than_random_actions_and_unknown_tasks_have_no_scale():
    assert scale(to_runs([result(task="Pendulum-P", final=-1500.0)])) is None
    assert scale(to_runs([result(task="Swimmer-v5")])) is None


def test_success_is_its_own_scale():
    line = result(
        task="metaworld/reach", eval_success=[[False, False], [True, False], [True, True], [True, True]]
    )
    runs = to_runs([line])
    assert final_scores(runs, scale(runs)) == [1.0]
    np.testing.assert_allclose(
        score_curves(runs, scale(runs), 1000)[9], [0.5]
    )  # half way: the second of four


def test_curves_pass_through_evaluations_and_between_them_in_straight_lines():
    run = to_runs([result(final=100.0, steps=1000, evaluations=4)])
    curve = score_curves(run, Scale(0.0, 100.0, "ceiling"), 1000)[:, 0]
    np.testing.assert_allclose(curve[4::5], [0.25, 0.5, 0.75, 1.0])
    np.testing.assert_allclose(curve[4:], SHARES[4:], atol=1e-12)
    np.testing.assert_allclose(curve[:4], 0.25)  # nothing is known before the first evaluation


def test_of_equal_runs_the_last_counts_and_of_unequal_ones_the_options_are_told():
    again = result(final=7.0)
    assert [run.returns[-1] for run in to_runs([result(), again])] == [7.0]
    other = result(config_hash="other")
    other["config"] = other["config"] | {"agent": {"window": 1}}
    assert [run.method for run in to_runs([result(), other])] == ["mulv", "mulv/window 1"]


def test_seeds_of_other_code_versions_stay_one_method():
    """A field that later code added is no other method, as long as no seed ran twice."""
    later = result(seed=1, config_hash="later")
    later["config"] = later["config"] | {"new_option": 1}
    assert [run.method for run in to_runs([result(), later])] == ["mulv", "mulv"]


def test_suites_come_largest_first_and_methods_in_their_order():
    lines = [
        result("sac"),
        result("mulv/x"),
        result("zeta"),
        result("mulv"),
        result("lvrep", "HalfCheetah-F"),
    ]
    runs = to_runs([result(suite="small"), *lines])
    assert list(by_suite(runs)) == ["trial", "small"]
    found = by_label(by_suite(runs)["trial"])
    assert list(found) == ["mulv", "mulv/x", "sac", "lvrep (full obs.)", "zeta"]
    assert all(list(rows) == ["HalfCheetah"] for rows in found.values())


def covered(**tasks):
    lines = [result(method, f"{task}-P") for method, some in tasks.items() for task in some]
    table = by_label(to_runs(lines))
    return comparable(table, scales(table))


def test_methods_are_compared_on_the_tasks_that_all_have():
    assert covered(mulv=["Ant", "Hopper"], sac=["Hopper", "Walker"]) == (["mulv", "sac"], ["Hopper"])


def test_a_method_that_barely_began_does_not_shrink_the_comparison():
    six = ["Ant", "Hopper", "Walker", "HalfCheetah", "cheetah-run", "walker-run"]
    assert covered(mulv=six, sac=six, slac=["Ant"]) == (["mulv", "sac"], sorted(six))


def test_methods_that_share_nothing_are_not_compared():
    assert covered(mulv=["Ant", "Hopper"], sac=["Walker"]) == (["mulv"], ["Ant", "Hopper"])
    assert covered(mulv=["Swimmer-v5"]) == ([], [])


@given(st.lists(st.sets(st.sampled_from(["Ant", "Hopper", "Walker", "Humanoid"])), min_size=1, max_size=4))
def test_whatever_is_compared_is_there(sets):
    names = ["mulv", "sac", "slac", "psr"][: len(sets)]
    labels, problems = covered(**dict(zip(names, sets, strict=True)))
    chosen = dict(zip(names, sets, strict=True))
    assert all(problem in chosen[label] for label in labels for problem in problems)
    assert bool(labels) == bool(problems) == any(sets)


def test_a_run_never_evaluated_is_in_no_table():
    silent = result(seed=1, eval_env_steps=[], eval_returns=[], final_mean=None)
    runs = to_runs([result(), silent])
    assert len(runs) == 2
    assert len(by_label(runs)["mulv"]["HalfCheetah"]) == 1


def test_the_best_mean_is_the_best_however_many_seeds():
    lines = [result("mulv", "Pendulum-P", s, final=-200.0) for s in range(3)]
    runs = to_runs([*lines, result("sac", "Pendulum-P", final=-150.0)])
    assert scale(runs).one == pytest.approx(-150.0)
