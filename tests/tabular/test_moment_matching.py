"""d^π(x_h, a_h) = d^{π̃^h}(x_h, a_h): where it holds, under which reading, and where it does not."""

from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mulv.tabular.measure import Latent, Measure, latents
from mulv.tabular.moment_matching import moment_matching_error, moment_matching_policy
from mulv.tabular.policies import belief_policy, window_policy
from mulv.tabular.pomdp import POMDP
from mulv.tabular.windows import Histories, Policy, enumerate_histories
from mulv.tabular.zoo import make
from tests.tabular.models import generic, noisy_cause, of_order, with_fresh_bit

seeds = st.integers(0, 10_000)
some = pytest.mark.parametrize("seed", range(5))  # what must fail, fails on these; others may come close


def worst(
    histories: Histories, policy: Policy, latent: Latent = "states", length: int | None = None
) -> float:
    steps = range(histories.horizon)
    return max(moment_matching_error(histories, policy, h, latent=latent, length=length) for h in steps)


@settings(max_examples=8)
@given(seeds)
@pytest.mark.parametrize("latent", ["states", "decoded"])
@pytest.mark.parametrize("draw", [window_policy, belief_policy])
def test_moments_match_in_decodable_pomdps(draw, latent: Latent, seed: int) -> None:
    for pomdp, length in (
        (of_order(2, seed, observations=3), 2),
        (of_order(3, seed), 3),
        (with_fresh_bit(of_order(2, seed), seed), 2),
        (noisy_cause(seed), 2),
        (make("random-decodable", L=2, seed=seed), 2),
    ):
        histories = enumerate_histories(pomdp, length, 2 * length + 1)
        assert worst(histories, draw(histories, np.random.default_rng(seed)), latent) < 1e-12


@pytest.mark.parametrize("latent", ["states", "decoded"])
def test_moments_match_in_the_lock(latent: Latent) -> None:
    histories = enumerate_histories(make("lock", H=8, L=3), 3, 8)
    assert worst(histories, belief_policy(histories, np.random.default_rng(0)), latent) < 1e-12


@settings(max_examples=8)
@given(seeds)
def test_told_the_states_moments_of_window_policies_match_in_every_pomdp(seed: int) -> None:
    """Nothing in the definition as written needs decodability, once π is an L-step policy."""
    histories = enumerate_histories(generic(seed, observations=2), 2, 5)
    assert worst(histories, window_policy(histories, np.random.default_rng(seed))) < 1e-12


@some
@pytest.mark.parametrize("latent", ["states", "decoded"])
def test_moments_of_belief_policies_do_not_match_in_generic_pomdps(latent: Latent, seed: int) -> None:
    histories = enumerate_histories(generic(seed, observations=2), 2, 5)
    assert worst(histories, belief_policy(histories, np.random.default_rng(seed)), latent) > 1e-4


@pytest.mark.parametrize(("name", "length"), [("t-maze", 3), ("tiger", 2), ("lock", 2)])
def test_told_what_windows_decode_to_moments_do_not_match_without_decoding(name: str, length: int) -> None:
    histories = enumerate_histories(make(name), length, 6)
    assert worst(histories, belief_policy(histories, np.random.default_rng(0)), "decoded") > 1e-4


@some
def test_a_policy_that_reads_more_than_l_steps_is_not_matched_even_in_a_decodable_pomdp(seed: int) -> None:
    histories = enumerate_histories(of_order(2, seed), 3, 5)
    policy = window_policy(histories, np.random.default_rng(seed))
    assert worst(histories, policy, length=2) > 1e-4
    assert worst(histories, policy, length=3) < 1e-12


def trajectories(pomdp: POMDP, histories: Histories, policy: Policy, last: int):
    """Every (s_0, o_0, a_0, …, s_last, o_last) with its probability and its histories' places."""
    transition, emission = pomdp.dense()
    first = pomdp.start[:, None] * pomdp.initial_observation.toarray()
    stack = [(((s, o),), (), (o,), p) for (s, o), p in np.ndenumerate(first) if p]
    while stack:
        shown, acts, places, p = stack.pop()
        h, s = len(acts), shown[-1][0]
        if h == last:
            yield shown, acts, places, p
            continue
        for a, pa in enumerate(policy[h][places[-1]]):
            for (s1, o1), q in np.ndenumerate(transition[a, s][:, None] * emission[a]):
                if q:
                    place = histories.layers[h].next_history[places[-1], a, o1]
                    stack.append(((*shown, (s1, o1)), (*acts, a), (*places, place), p * pa * q))


def test_nu_is_the_conditional_expectation_of_the_definition() -> None:
    """Against the definition, evaluated by listing every trajectory of states and observations."""
    pomdp = generic(1, states=2, observations=2)
    histories = enumerate_histories(pomdp, 3, 4)
    policy = window_policy(histories, np.random.default_rng(0))
    first, last = 1, 3
    followed = latents(histories, policy, "states")
    steps = moment_matching_policy(histories, policy, first, last, followed)
    for h, nu in enumerate(steps, first):
        mass, acted, rows = defaultdict(float), defaultdict(float), {}
        for shown, acts, places, p in trajectories(pomdp, histories, policy, h):
            told = shown[first:], acts[first:]
            mass[told] += p
            acted[told] = acted[told] + p * policy[h][places[-1]]
            path = 0
            for s, _ in shown[first:]:
                path = path * pomdp.states + s
            rows[told] = path, places[-1], shown[-1][0]
        path, place, state = np.array(list(rows.values())).T
        ones = np.ones(len(path))
        expected = np.array([acted[told] / mass[told] for told in rows])
        np.testing.assert_allclose(nu(Measure(ones, state, place, path, 0 * path)), expected, atol=1e-12)
        differs = np.abs(expected - policy[h][place]).max()
        assert differs > 1e-3  # else forgetting would be no loss


def test_nu_acts_uniformly_where_pi_never_comes() -> None:
    histories = enumerate_histories(of_order(2, 0), 2, 4)
    always = [np.eye(2)[np.zeros(len(layer.window), int)] for layer in histories.layers]
    nu = moment_matching_policy(histories, always, 1, 2, latents(histories, always, "states"))[0]
    unmet = Measure(np.ones(1), *np.array([[0], [0], [10**6], [0]]))
    np.testing.assert_array_equal(nu(unmet), [[0.5, 0.5]])
