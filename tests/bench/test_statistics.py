"""Closed forms of the aggregates."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mulv.bench.statistics import interquartile_mean, stratified_interval


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
    assert interquartile_mean(np.asarray(scores)) == pytest.approx(wanted)


@given(st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=30), st.integers(0, 1000))
def test_order_does_not_matter_and_the_result_lies_within(scores, seed):
    scores = np.asarray(scores)
    shuffled = np.random.default_rng(seed).permutation(scores)
    iqm = interquartile_mean(scores)
    assert interquartile_mean(shuffled) == pytest.approx(iqm)
    assert scores.min() - 1e-6 <= iqm <= scores.max() + 1e-6


def test_one_wild_run_does_not_move_it_much():
    steady = np.ones(12)
    wild = np.append(steady, 1e6)
    assert interquartile_mean(wild) == pytest.approx(1.0)
    assert wild.mean() > 1e4


def test_an_interval_holds_the_truth_as_often_as_it_says():
    rng, hits = np.random.default_rng(0), 0
    for i in range(100):
        scores = {task: list(rng.normal(1.0, 0.3, 8)) for task in "abcd"}
        low, high = stratified_interval(scores, samples=200, seed=i)
        hits += low <= 1.0 <= high
    assert 82 <= hits <= 100
    assert stratified_interval({"a": [2.0, 2.0]}) == (2.0, 2.0)
