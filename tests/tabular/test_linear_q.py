"""Q^π over windows, and how linear it is: exact where the theory says so, and not elsewhere."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mulv.tabular.decomposition import (
    decomposition_error,
    mean_decomposition_error,
    policy_factor,
)
from mulv.tabular.linear_q import (
    backup,
    backup_residual,
    history_values,
    latent_features,
    linear_q_residual,
    project,
    window_value_gap,
)
from mulv.tabular.policies import belief_policy, window_policy
from mulv.tabular.pomdp import POMDP
from mulv.tabular.windows import Histories, Policy, enumerate_histories, history_occupancy
from mulv.tabular.zoo import make
from tests.tabular.models import delayed_bit, generic, noisy_cause, of_order, with_fresh_bit

seeds = st.integers(0, 10_000)
some = pytest.mark.parametrize("seed", range(5))  # what must fail, fails on these; others may come close


def decodable(seed: int) -> list[tuple[POMDP, int]]:
    return [
        (of_order(2, seed, observations=3), 2),
        (of_order(3, seed), 3),
        (with_fresh_bit(of_order(2, seed), seed), 2),
        (noisy_cause(seed), 2),
        (make("random-decodable", L=2, seed=seed), 2),
    ]


def drawn(pomdp: POMDP, length: int, seed: int, horizon: int | None = None) -> tuple[Histories, Policy]:
    histories = enumerate_histories(pomdp, length, horizon or 2 * length + 1)
    return histories, window_policy(histories, np.random.default_rng(seed))


def expectimax(histories: Histories, policy: Policy, h: int, place: int, a: int) -> float:
    """Q^π(τ_h, a) by recursion over what may be seen."""
    pomdp, layer = histories.pomdp, histories.layers[h]
    value = float(pomdp.reward[a] @ layer.belief[place])
    for after, p in zip(layer.next_history[place, a], layer.probability[place, a], strict=True):
        if after >= 0:
            acts = policy[h + 1][after]
            later = sum(pi * expectimax(histories, policy, h + 1, after, b) for b, pi in enumerate(acts))
            value += pomdp.discount * p * later
    return value


@settings(max_examples=5)
@given(seeds)
def test_values_are_those_of_a_recursion_over_beliefs(seed: int) -> None:
    for pomdp in (generic(seed, observations=2), noisy_cause(seed, observations=2), make("tiger")):
        histories, policy = drawn(pomdp, 2, seed, 4)
        for h, q in enumerate(history_values(histories, policy)[1:3], 1):
            for (place, a), value in np.ndenumerate(q[:5]):
                assert value == pytest.approx(expectimax(histories, policy, h, place, a), abs=1e-9)


@settings(max_examples=5)
@given(seeds)
def test_a_one_step_backup_is_q_and_longer_ones_have_its_mean_under_d_pi(seed: int) -> None:
    for pomdp, length in (*decodable(seed), (generic(seed, observations=2), 2)):
        histories, policy = drawn(pomdp, length, seed)
        for h in range(histories.horizon):
            layer = histories.layers[h]
            reward = (layer.belief @ pomdp.reward.T).reshape(-1)
            q = history_values(histories, policy)[h].reshape(-1)
            np.testing.assert_allclose(reward + backup(histories, policy, h, 1), q, atol=1e-11)
            d = (history_occupancy(histories, policy)[h][:, None] * policy[h]).reshape(-1)
            assert d @ (reward + backup(histories, policy, h, length)) == pytest.approx(d @ q, abs=1e-11)


@settings(max_examples=5)
@given(seeds)
def test_q_is_a_function_of_the_window_where_it_decodes(seed: int) -> None:
    for pomdp, length in decodable(seed):
        assert window_value_gap(*drawn(pomdp, length, seed)) < 1e-12


@some
def test_q_is_no_function_of_the_window_where_it_does_not_decode(seed: int) -> None:
    assert window_value_gap(*drawn(generic(seed, observations=2), 2, seed)) > 1e-3
    assert window_value_gap(*drawn(make("random-decodable", L=3, seed=seed), 2, seed)) > 1e-3


@settings(max_examples=5)
@given(seeds)
def test_l_steps_are_linear(seed: int) -> None:
    for pomdp, length in decodable(seed):
        assert linear_q_residual(*drawn(pomdp, length, seed)) < 1e-10


@some
def test_one_step_is_not_linear_where_l_steps_are(seed: int) -> None:
    """The point of the paper: the overlap of x_h and x_{h+1} breaks the one-step factorisation."""
    for pomdp, length in decodable(seed):
        assert backup_residual(*drawn(pomdp, length, seed), 1) > 1e-3


def test_the_residual_vanishes_at_l_steps_and_not_before() -> None:
    histories, policy = drawn(of_order(3, 0), 3, 0)
    residuals = [backup_residual(histories, policy, steps) for steps in (1, 2, 3)]
    assert residuals[0] > 1e-2
    assert residuals[1] > 1e-2
    assert residuals[2] < 1e-10


@some
def test_l_steps_are_not_linear_where_windows_do_not_decode(seed: int) -> None:
    for pomdp in (generic(seed, observations=2), make("random-decodable", L=3, seed=seed)):
        assert linear_q_residual(*drawn(pomdp, 2, seed)) > 1e-3


@pytest.mark.parametrize(("pomdp", "length"), [(make("tiger"), 2), (make("t-maze"), 3), (delayed_bit(4), 2)])
def test_l_steps_are_not_linear_in_known_undecodable_pomdps(pomdp: POMDP, length: int) -> None:
    assert linear_q_residual(*drawn(pomdp, length, 0, pomdp.horizon)) > 1e-3


def test_q_of_a_window_policy_need_not_be_linear_even_if_the_state_is_seen() -> None:
    """The smallest counterexample to reading the claim for Q^π itself and any L-step policy.

    States are seen and drawn anew at each step, so p(s_1 | o_0, a_0) is one distribution. The policy of step
    1 does what o_0 was, and that pays.
    """
    half = np.full((2, 2), 0.5)
    reward = np.array([[0.0, 0.0], [1.0, 1.0]])
    pomdp = POMDP((half,) * 2, (np.eye(2),) * 2, reward, np.full(2, 0.5), 1.0, np.eye(2))
    histories = enumerate_histories(pomdp, 2, 2)
    last = histories.layers[1]
    repeat = np.eye(2)[[last.windows[place][0] for place in last.window]]
    policy = [np.full((2, 2), 0.5), repeat]
    np.testing.assert_allclose(backup(histories, policy, 0, 1).reshape(2, 2), [[0, 0], [1, 1]])
    assert project(latent_features(histories, policy, 0), backup(histories, policy, 0, 1)).residual > 0.49
    np.testing.assert_allclose(backup(histories, policy, 0, 2), 0.5)


@settings(max_examples=5)
@given(seeds)
def test_q_itself_is_linear_for_policies_of_dirac_beliefs(seed: int) -> None:
    histories = enumerate_histories(of_order(2, seed, observations=3), 2, 5)
    policy = belief_policy(histories, np.random.default_rng(seed))
    assert backup_residual(histories, policy, 1) < 1e-10


@some
def test_q_itself_is_not_linear_for_policies_of_other_beliefs_but_l_steps_are(seed: int) -> None:
    histories = enumerate_histories(noisy_cause(seed), 2, 5)
    policy = belief_policy(histories, np.random.default_rng(seed))
    assert backup_residual(histories, policy, 1) > 1e-4
    assert linear_q_residual(histories, policy) < 1e-10


@settings(max_examples=5)
@given(seeds)
def test_the_decomposition_is_exact_for_nu_and_in_the_mean_for_pi(seed: int) -> None:
    for pomdp, length in decodable(seed):
        histories, policy = drawn(pomdp, length, seed)
        assert decomposition_error(histories, policy, length) < 1e-12
        assert mean_decomposition_error(histories, policy, length) < 1e-12


@some
def test_the_decomposition_is_not_exact_for_pi_itself(seed: int) -> None:
    for pomdp, length in decodable(seed):
        assert decomposition_error(*drawn(pomdp, length, seed), length, matched=False) > 1e-2


@some
def test_the_decomposition_fails_where_windows_do_not_decode(seed: int) -> None:
    histories, policy = drawn(generic(seed, observations=2), 2, seed)
    assert decomposition_error(histories, policy, 2) > 1e-4


def test_emissions_that_depend_on_the_action_need_it_in_the_latent() -> None:
    """Tiger's whole history, as a window: every belief is decoded, and z is (a_h, s_{h+1})."""
    histories, policy = drawn(make("tiger"), 3, 0, 3)
    assert latent_features(histories, policy, 0).shape[1] == 6
    assert linear_q_residual(histories, policy) < 1e-10


def test_one_factor_depends_on_the_policy_and_the_other_does_not() -> None:
    histories, first = drawn(of_order(2, 0), 2, 0)
    second = window_policy(histories, np.random.default_rng(1))
    p, q = (latent_features(histories, policy, 2) for policy in (first, second))
    np.testing.assert_allclose(p, q, atol=1e-12)
    apart = np.abs(policy_factor(histories, first, 2) - policy_factor(histories, second, 2)).sum(axis=1)
    assert np.max(apart) > 0.1
    weights = [project(p, backup(histories, policy, 2, 2)).weights for policy in (first, second)]
    assert np.max(np.abs(weights[0] - weights[1])) > 1e-2
