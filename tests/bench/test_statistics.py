"""The aggregates against closed forms and the definitions of Agarwal et al. (2021), written out naively."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from mulv.bench.statistics import (
    AGGREGATES,
    estimate,
    interquartile_mean,
    mean,
    median,
    optimality_gap,
    performance_profile,
    probability_of_improvement,
    t_half_width,
    welch_half_width,
)
from mulv.core.errors import MulvError

numbers = st.floats(-100, 100, allow_nan=False).map(lambda x: round(x, 3))


def score_tables(least=1, most=5):
    """One array a task, each with its own number of seeds."""
    task = st.lists(numbers, min_size=1, max_size=6).map(np.asarray)
    return st.lists(task, min_size=least, max_size=most)


@pytest.mark.parametrize(
    ("scores", "wanted"),
    [
        ([7.0], 7.0),
        ([0.0, 1.0, 2.0, 100.0], 1.5),
        ([0.0, 10.0], 5.0),
        ([0.0, 3.0, 9.0], 0.0 * 1 / 6 + 3.0 * 4 / 6 + 9.0 * 1 / 6),
        (list(range(8)), 3.5),
    ],
)
def test_the_middle_half_is_averaged(scores, wanted):
    assert interquartile_mean([np.asarray(scores)]) == pytest.approx(wanted)


@given(st.integers(1, 4), st.integers(1, 3), st.integers(0, 10**6))
def test_iqm_is_the_published_trimmed_mean_where_a_quarter_is_whole(tasks, quarter, seed):
    """rliable: scipy.stats.trim_mean(scores, 0.25) over all runs."""
    scores = np.random.default_rng(seed).normal(size=(tasks, 4 * quarter))
    assert interquartile_mean(list(scores)) == pytest.approx(stats.trim_mean(scores, 0.25, axis=None))


@given(score_tables())
def test_iqm_of_unequal_seeds_is_that_of_runs_repeated_until_tasks_are_equal(scores):
    common = np.lcm.reduce([task.size for task in scores]) * 4
    repeated = np.concatenate([np.repeat(task, common // task.size) for task in scores])
    assert interquartile_mean(scores) == pytest.approx(stats.trim_mean(repeated, 0.25), abs=1e-9)


@given(score_tables(), st.floats(-2, 2))
def test_mean_median_and_gap_are_the_published_ones(scores, target):
    means = [sum(task) / len(task) for task in scores]
    assert mean(scores) == pytest.approx(sum(means) / len(means))
    assert median(scores) == pytest.approx(np.median(means))
    capped = [np.mean([min(x, target) for x in task]) for task in scores]
    assert optimality_gap(scores, target) == pytest.approx(target - np.mean(capped))
    assert optimality_gap(scores, target) >= -1e-9


@given(score_tables(), st.integers(0, 1000))
def test_the_order_of_seeds_and_tasks_does_not_matter_and_aggregates_lie_within(scores, seed):
    rng = np.random.default_rng(seed)
    shuffled = [rng.permutation(scores[i]) for i in rng.permutation(len(scores))]
    low, high = min(task.min() for task in scores), max(task.max() for task in scores)
    for name, aggregate in AGGREGATES.items():
        assert aggregate(shuffled) == pytest.approx(aggregate(scores), abs=1e-9)
        if name != "optimality gap":
            assert low - 1e-9 <= aggregate(scores) <= high + 1e-9


def test_one_wild_run_moves_the_mean_but_not_the_iqm():
    wild = [np.append(np.ones(12), 1e6)]
    assert interquartile_mean(wild) == pytest.approx(1.0)
    assert mean(wild) > 1e4


@given(score_tables(), st.lists(numbers, min_size=1, max_size=8))
def test_a_profile_is_the_share_of_runs_above_each_threshold(scores, thresholds):
    naive = [np.mean([sum(x > t for x in task) / len(task) for task in scores]) for t in thresholds]
    profile = performance_profile(scores, np.asarray(thresholds))
    np.testing.assert_allclose(profile, naive, atol=1e-12)
    falling = performance_profile(scores, np.sort(thresholds))
    assert np.all(np.diff(falling) <= 1e-12)


def test_the_area_under_a_profile_is_the_mean_score():
    """Of scores in [0, 1]: E[x] is the integral of P(x > τ)."""
    scores = list(np.random.default_rng(0).uniform(size=(3, 5)))
    thresholds = (np.arange(20_000) + 0.5) / 20_000
    assert performance_profile(scores, thresholds).mean() == pytest.approx(mean(scores), abs=1e-4)


@given(score_tables(3, 3), score_tables(3, 3))
def test_improvement_is_the_mann_whitney_u_of_each_task(first, second):
    """rliable: the mean over tasks of U / (N M)."""
    published = [
        stats.mannwhitneyu(x, y, method="asymptotic").statistic / x.size / y.size
        for x, y in zip(first, second, strict=True)
    ]
    assert probability_of_improvement(first, second) == pytest.approx(np.mean(published))
    backward = probability_of_improvement(second, first)
    assert probability_of_improvement(first, second) + backward == pytest.approx(1.0)
    assert probability_of_improvement(first, first) == pytest.approx(0.5)


def naive_interval(statistic, scores, rng, samples):
    drawn = [
        statistic([np.asarray([rng.choice(task) for _ in task]) for task in scores]) for _ in range(samples)
    ]
    return np.quantile(drawn, [0.025, 0.975])


@pytest.mark.parametrize("name", AGGREGATES)
def test_the_interval_is_that_of_redrawing_seeds_one_by_one(name):
    rng = np.random.default_rng(1)
    scores = [rng.normal(task, 1.0, size=3 + task) for task in range(4)]
    value, low, high = estimate(AGGREGATES[name], scores, rng=rng, samples=20_000)
    assert value == AGGREGATES[name](scores)
    np.testing.assert_allclose([low, high], naive_interval(AGGREGATES[name], scores, rng, 4000), atol=0.06)


@pytest.mark.parametrize("name", AGGREGATES)
def test_an_interval_holds_the_truth_as_often_as_it_says(name):
    """Ten seeds of four tasks; the truth is the statistic of very many seeds."""
    rng = np.random.default_rng(0)
    tasks = [(0.6, 0.1), (0.8, 0.3), (1.0, 0.2), (1.2, 0.3)]
    truth = AGGREGATES[name]([rng.normal(*task, size=200_000) for task in tasks])
    hits = 0
    for _ in range(300):
        scores = [rng.normal(*task, size=10) for task in tasks]
        _, low, high = estimate(AGGREGATES[name], scores, rng=rng, samples=300)
        hits += low <= truth <= high
    assert 0.87 <= hits / 300 <= 0.98


def test_three_seeds_of_one_task_are_too_few_and_t_intervals_allow_for_it():
    """What docs/benchmarks.md warns of."""
    rng, bootstrap, student = np.random.default_rng(0), 0, 0
    for _ in range(400):
        scores = rng.normal(size=3)
        _, low, high = estimate(mean, [scores], rng=rng, samples=200)
        bootstrap += low <= 0 <= high
        student += abs(scores.mean()) <= t_half_width(scores)
    assert bootstrap / 400 < 0.8
    assert 0.92 < student / 400 < 0.98


def test_tasks_are_strata_so_their_differences_are_no_uncertainty():
    scores = [np.full(4, 0.0), np.full(4, 10.0)]
    assert estimate(mean, scores, rng=np.random.default_rng(0)) == (5.0, 5.0, 5.0)


def test_curves_are_redrawn_whole():
    """Two seeds with crossing curves: their difference over steps keeps its sign in every sample's mean."""
    curves = np.asarray([[0.0, 1.0], [1.0, 0.0]])  # steps, seeds
    value, low, high = estimate(mean, [curves], rng=np.random.default_rng(0))
    np.testing.assert_allclose(value, [0.5, 0.5])
    together = estimate(lambda s: mean(s).sum(axis=-1), [curves], rng=np.random.default_rng(0))
    assert together == (1.0, 1.0, 1.0)  # redrawn apart, the two steps would not add up
    assert np.all(low < high)


def test_the_generator_decides_the_interval():
    scores = [np.random.default_rng(0).normal(size=5)]
    twice = [estimate(mean, scores, rng=np.random.default_rng(7)) for _ in range(2)]
    assert twice[0] == twice[1]
    assert twice[0] != estimate(mean, scores, rng=np.random.default_rng(8))


def test_t_and_welch_intervals_are_scipys():
    rng = np.random.default_rng(0)
    x, y = rng.normal(0, 1, 4), rng.normal(0, 3, 6)
    low, high = stats.ttest_1samp(x, 0).confidence_interval()
    assert t_half_width(x) == pytest.approx((high - low) / 2)
    low, high = stats.ttest_ind(x, y, equal_var=False).confidence_interval()
    width = welch_half_width((x.std(ddof=1), x.size), (y.std(ddof=1), y.size))
    assert width == pytest.approx((high - low) / 2)
    assert welch_half_width((0.0, 3), (0.0, 4)) == 0.0


@pytest.mark.parametrize(
    ("scores", "said"),
    [
        ([], "no tasks"),
        ([np.ones(3), np.ones(0)], "task 1 has no seeds"),
        ([np.asarray([1.0, np.nan])], "task 0 has scores that are not finite"),
    ],
)
def test_what_cannot_be_aggregated_is_said(scores, said):
    with pytest.raises(MulvError, match=said):
        estimate(mean, scores, rng=np.random.default_rng(0))


def test_methods_on_different_tasks_and_intervals_of_nothing_are_refused():
    one, two = [np.ones(2)], [np.ones(2), np.ones(2)]
    with pytest.raises(MulvError, match="same tasks"):
        probability_of_improvement(one, two)
    with pytest.raises(MulvError, match="level"):
        estimate(mean, one, rng=np.random.default_rng(0), level=95)
    with pytest.raises(MulvError, match="at least two"):
        t_half_width(np.ones(1))
