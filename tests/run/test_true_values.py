"""True values against those known by hand, and critics against the truth."""

import gymnasium as gym
import jax
import numpy as np
import pytest

from mulv.core.errors import MulvError
from mulv.run import compiled
from mulv.run.diagnostics.critic_agreement import agreement, ceiling, predicted_values
from mulv.run.diagnostics.true_values import TrueValues, TruthOptions, discounted, measure_true_values
from tests.run.line import GAMMA, HORIZON, Back, Line, make, return_by_hand

OPTIONS = TruthOptions(states=12, every=2, actions=5, repeats=1, horizon=HORIZON)
STATE = compiled.init(Back(), jax.random.key(0))


class LineWithoutEdge(Line):
    def step(self, action):
        obs, _, _, truncated, info = super().step(action)
        return obs, 1.0, False, truncated, info


@pytest.fixture(scope="module")
def truth():
    return measure_true_values(Back(), STATE, make, OPTIONS)


def test_returns_are_those_by_hand(truth):
    x = truth.obs[truth.episode, truth.time, 0]
    by_hand = [[return_by_hand(x, a) for a in tried[:, 0]] for x, tried in zip(x, truth.tried, strict=True)]
    np.testing.assert_allclose(truth.returns(GAMMA)[..., 0], by_hand, atol=1e-5)


def test_some_rollouts_terminate_and_earn_nothing_after(truth):
    ended = (truth.rewards == 0).any(axis=-1)
    assert ended.any()
    assert not ended.all()


def test_the_first_action_is_the_policys_own_without_noise(truth):
    later = truth.time > 0
    before = truth.obs[truth.episode, truth.time - 1, 0]
    np.testing.assert_allclose(truth.tried[later, 0, 0], np.clip(-before / 2, -1, 1)[later], atol=1e-6)


def test_the_time_limit_does_not_end_a_rollout():
    options = TruthOptions(states=8, every=3, actions=2, deviation=0.0, repeats=1, horizon=40)
    found = measure_true_values(Back(), STATE, lambda: gym.wrappers.TimeLimit(LineWithoutEdge(), 20), options)
    assert (found.time > 0).any()
    assert (np.abs(found.rewards[..., -1]) > 0).all()  # 20 steps are the limit


def test_a_critic_that_is_the_truth_agrees_with_it(truth):
    heads = predicted_values(Back(), STATE, truth)
    found = agreement(heads[..., 0], truth.returns(GAMMA)[..., 0])
    assert found.advantage_correlation == pytest.approx(1, abs=1e-5)
    assert found.state_correlation == pytest.approx(1, abs=1e-5)
    assert found.value_bias == pytest.approx(0, abs=1e-5)
    assert found.value_rmse == pytest.approx(0, abs=1e-5)
    assert found.best_above_mean == 1


def test_a_critic_is_asked_at_what_it_is_shown(truth):
    blind = predicted_values(Back(), STATE, truth, shown=np.zeros_like)[..., 0]
    by_hand = [[return_by_hand(0.0, a) for a in tried[:, 0]] for tried in truth.tried]
    np.testing.assert_allclose(blind, by_hand, atol=1e-5)


def test_random_values_do_not_agree_and_intervals_say_so():
    rng = np.random.default_rng(0)
    found = agreement(rng.normal(size=(500, 9)), rng.normal(size=(500, 9)))
    assert abs(found.advantage_correlation) < 0.06
    assert abs(found.state_correlation) < 0.06
    low, high = found.advantage_correlation_interval
    assert low < 0 < high
    assert 0.4 < found.best_above_mean < 0.6


def test_advantages_do_not_see_what_values_are_off_by():
    rng = np.random.default_rng(0)
    true = rng.normal(size=(50, 9))
    found = agreement(2 * true + 10 * rng.normal(size=(50, 1)), true)
    assert found.advantage_correlation == pytest.approx(1)
    assert found.advantage_scale == pytest.approx(2)
    assert found.value_rmse > 5
    assert agreement(true + 3, true).value_bias == pytest.approx(3 / true.std())


def test_the_ceiling_is_what_the_noiseless_values_reach():
    rng = np.random.default_rng(0)
    signal = rng.normal(size=(2000, 9))
    returns = signal[..., None] + 1.5 * rng.normal(size=(2000, 9, 4))
    reached = agreement(signal, returns.mean(axis=-1))
    found = ceiling(returns)
    assert found is not None
    assert found.advantage_correlation == pytest.approx(reached.advantage_correlation, abs=0.02)
    assert found.state_correlation == pytest.approx(reached.state_correlation, abs=0.04)
    assert ceiling(returns[..., :1]) is None


def test_discounting_refuses_a_horizon_that_is_too_short():
    assert discounted(np.ones((1, 10)), 0.5)[0] == pytest.approx(2 - 0.5**9)
    with pytest.raises(MulvError, match="a horizon of 390"):
        discounted(np.ones((1, 10)), 0.99)


def test_saved_values_are_read_again_with_the_same_options_only(truth, tmp_path):
    truth.save(tmp_path / "truth.npz", OPTIONS)
    again = TrueValues.load(tmp_path / "truth.npz", OPTIONS)
    assert all(np.array_equal(a, b) for a, b in zip(again, truth, strict=True))
    with pytest.raises(MulvError, match="measured with"):
        TrueValues.load(tmp_path / "truth.npz", TruthOptions())
