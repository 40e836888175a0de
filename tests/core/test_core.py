"""The shared maths against closed forms and naive lists."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate
from scipy.stats import norm

from mulv.core.errors import MulvError
from mulv.core.gaussian import TanhNormal
from mulv.core.learner import polyak, tree_all_finite
from mulv.core.memory import empty_window, push
from mulv.core.names import lookup, nearest
from mulv.core.normalise import ObsMoments, RunningMoments
from mulv.core.spec import BatchSpec, EnvSpec, Step
from mulv.core.types import Window
from mulv.data import Replay, ReplayLayout

SPEC = EnvSpec((3,), 2)


def naive_window(
    obs: list[np.ndarray], actions: list[np.ndarray], rewards: list[float], length: int
) -> Window:
    missing = max(length - len(obs), 0)
    padded_obs = [np.zeros(3)] * missing + obs[-length:]
    padded_actions = [np.zeros(2)] * missing + actions[len(actions) - (len(obs[-length:]) - 1) :]
    mask = [False] * missing + [True] * (length - missing)
    between = np.array(padded_actions).reshape(length - 1, 2)
    return Window(
        np.array(padded_obs), between, np.array(mask), np.array([0.0] * missing + rewards[-length:])
    )


@given(st.lists(st.integers(1, 6), min_size=1, max_size=3), st.integers(1, 4))
@settings(max_examples=15)
def test_window_memory_equals_a_list_over_episodes(lengths, window):
    rng = np.random.default_rng(0)
    for length in lengths:
        x_h, a_prev, obs, actions, rewards = empty_window(SPEC, window), jnp.zeros(2), [], [], []
        for step in range(length):
            obs.append(rng.normal(size=3).astype(np.float32))
            rewards.append(float(step))
            x_h = push(x_h, a_prev, jnp.float32(step), jnp.asarray(obs[-1]))
            jax.tree.map(np.testing.assert_array_equal, x_h, naive_window(obs, actions, rewards, window))
            actions.append(rng.normal(size=2).astype(np.float32))
            a_prev = jnp.asarray(actions[-1])


@pytest.mark.parametrize("window", [1, 3])
def test_window_memory_equals_what_the_replay_cuts(tmp_path, window):
    """An agent acts on the windows that it learns from."""
    rng = np.random.default_rng(0)
    replay = Replay.create(tmp_path, ReplayLayout.of(SPEC, lanes=1, capacity=100, slack=0))
    acted_on = []
    for length in (1, 5, 2):
        action, x_h = np.zeros(2, np.float32), empty_window(SPEC, window)
        for step in range(length + 1):
            o_h, last = rng.normal(size=3).astype(np.float32), step == length
            r_prev = float(10 * length + step) if step else 0.0
            row = (np.array([v]) for v in (0, o_h, action, r_prev, last, False, step))
            replay.append(Step(*row))
            x_h = push(x_h, jnp.asarray(action), jnp.float32(r_prev), jnp.asarray(o_h))
            if not last:
                acted_on.append(x_h)
            action = rng.normal(size=2).astype(np.float32)
    cut = replay.cut(BatchSpec(1, window, 1, 1, 0.9), *replay.transitions(window)).x_h
    for got, expected in zip(cut, Window(*map(np.stack, zip(*acted_on, strict=True))), strict=True):
        np.testing.assert_array_equal(got, expected)


def test_tanh_normal_density_is_the_change_of_variables():
    rng = np.random.default_rng(0)
    mean, log_std, noise = rng.normal(size=(3, 50, 4))
    policy = TanhNormal(jnp.float32(mean), jnp.float32(log_std))
    _, got = jax.vmap(TanhNormal.sample_and_log_prob)(policy, jnp.float32(noise))
    u = mean + np.exp(log_std) * noise
    log_jacobian = -2 * np.log(np.cosh(u))  # 1 − tanh² = 1 / cosh²
    expected = (norm.logpdf(u, mean, np.exp(log_std)) - log_jacobian).sum(axis=1)
    np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("u", [-50.0, 50.0])
def test_tanh_normal_density_is_exact_where_tanh_saturates(u):
    policy = TanhNormal(jnp.array([u]), jnp.zeros(1))
    _, got = policy.sample_and_log_prob(jnp.zeros(1))
    expected = norm.logpdf(0.0) + 2 * np.log(np.cosh(u))
    np.testing.assert_allclose(got, expected, rtol=1e-5)


@pytest.mark.parametrize(("mean", "log_std"), [(0.0, -1.0), (0.7, -0.5), (-0.4, 0.3)])
def test_tanh_normal_density_integrates_to_one(mean, log_std):
    policy = TanhNormal(jnp.array([mean]), jnp.array([log_std]))
    actions = np.tanh(np.linspace(-9, 9, 20_001))
    noise = (np.arctanh(actions) - mean) / np.exp(log_std)
    log_prob = jax.vmap(lambda e: policy.sample_and_log_prob(e)[1])(jnp.float32(noise)[:, None])
    assert integrate.trapezoid(np.exp(np.float64(log_prob)), actions) == pytest.approx(1.0, abs=1e-3)


def test_tanh_normal_mode_is_the_action_without_noise():
    policy = TanhNormal(jnp.array([0.3, -2.0]), jnp.array([0.1, 0.2]))
    np.testing.assert_array_equal(policy.mode(), policy.sample_and_log_prob(jnp.zeros(2))[0])


@given(st.lists(st.integers(1, 9), min_size=1, max_size=5), st.integers(0, 2**32 - 1))
@settings(max_examples=20)
def test_running_moments_are_those_of_all_data(sizes, seed):
    batches = [np.random.default_rng([seed, i]).normal(3.0, 2.0, (n, 4)) for i, n in enumerate(sizes)]
    moments = RunningMoments((4,))
    for batch in batches:
        moments = moments.update(jnp.float32(batch))
    data = np.concatenate(batches)
    assert moments.count == len(data)
    np.testing.assert_allclose(moments.mean, data.mean(axis=0), rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(moments.variance, data.var(axis=0), rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(moments.second_moment, (data**2).mean(axis=0), rtol=1e-3, atol=1e-4)


def test_whitened_data_has_zero_mean_and_unit_variance():
    data = jnp.float32(np.random.default_rng(0).normal(-5.0, 3.0, (500, 2)))
    white = np.asarray(jax.vmap(RunningMoments((2,)).update(data).whiten)(data))
    np.testing.assert_allclose(white.mean(axis=0), 0.0, atol=1e-4)
    np.testing.assert_allclose(white.std(axis=0), 1.0, atol=1e-3)


def test_whitening_clips_at_the_limit():
    np.testing.assert_array_equal(RunningMoments((2,)).whiten(jnp.array([1e9, -1e9])), [10.0, -10.0])


def test_whitening_a_window_leaves_padding_zero():
    moments = RunningMoments((3,)).update(jnp.float32(np.random.default_rng(0).normal(7.0, 1.0, (20, 3))))
    x = naive_window([np.full(3, 7.0)] * 2, [np.ones(2)], [0.0, 1.0], 4)
    white = ObsMoments(moments, moments).whiten(jax.tree.map(jnp.asarray, x))
    assert not np.any(white.obs[:2])
    np.testing.assert_allclose(white.obs[2:], jax.vmap(moments.whiten)(jnp.asarray(x.obs[2:])), rtol=1e-6)


def test_changes_replace_the_older_observations_and_padding_stays_zero():
    rng = np.random.default_rng(0)
    seen = rng.normal(7.0, 1.0, (200, 3)).astype(np.float32)
    after = seen + rng.normal(0.0, [0.001, 1.0, 50.0], (200, 3)).astype(np.float32)
    empty = RunningMoments((3,))
    moments = ObsMoments(empty, empty).update(jnp.asarray(seen), jnp.asarray(after))
    x = naive_window([seen[0], after[0]], [np.ones(2)], [0.0, 1.0], 4)
    shown = moments.whiten_changes(jax.tree.map(jnp.asarray, x))
    assert not np.any(shown.obs[:2])
    root = np.sqrt(np.mean((after - seen) ** 2, axis=0))
    np.testing.assert_allclose(shown.obs[2], (after[0] - seen[0]) / root, rtol=1e-2)
    np.testing.assert_allclose(shown.obs[3], moments.level.whiten(jnp.asarray(after[0])), rtol=1e-5)


def test_scaling_keeps_zero_and_gives_unit_mean_square():
    data = jnp.float32(np.random.default_rng(0).normal(-5.0, 3.0, (500, 2)))
    moments = RunningMoments((2,)).update(data)
    scaled = np.asarray(moments.scale(data))
    np.testing.assert_allclose(np.mean(scaled**2, axis=0), 1.0, rtol=1e-3)
    assert not np.any(moments.scale(jnp.zeros((4, 2))))
    np.testing.assert_array_equal(moments.scale(jnp.array([1e9, -1e9])), [10.0, -10.0])


@pytest.mark.parametrize("tau", [0.0, 0.25, 1.0])
def test_polyak_moves_by_tau(tau):
    target, online = {"w": jnp.arange(4.0), "b": jnp.zeros(())}, {"w": jnp.ones(4) * 8, "b": jnp.ones(())}
    moved = polyak(target, online, tau)
    jax.tree.map(
        lambda m, t, o: np.testing.assert_array_equal(m, (1 - tau) * t + tau * o), moved, target, online
    )


@pytest.mark.parametrize(("bad", "finite"), [(0.0, True), (np.nan, False), (np.inf, False)])
def test_one_bad_number_anywhere_makes_a_tree_non_finite(bad, finite):
    tree = {"a": jnp.ones((2, 2)), "b": (jnp.array([1.0, bad]), jnp.arange(3))}
    assert bool(tree_all_finite(tree)) is finite


@pytest.mark.parametrize("typo", ["halfcheetah-p", "HalfChetah-P", "HalfCheeta-P"])
def test_nearest_forgives_case_and_typos(typo):
    assert nearest(typo, ["Hopper-P", "HalfCheetah-P", "HalfCheetah-F"]) == "HalfCheetah-P"


def test_nearest_of_nothing_alike_is_none():
    assert nearest("qqqq", ["Hopper-P", "HalfCheetah-P"]) is None


def test_lookup_returns_the_entry():
    assert lookup("number", "one", {"one": 1, "two": 2}) == 1


@pytest.mark.parametrize(("name", "hint"), [("thre", "did you mean 'three'?"), ("xyz", "there are: one")])
def test_lookup_of_a_missing_name_says_what_there_is(name, hint):
    with pytest.raises(MulvError) as error:
        lookup("number", name, {"one": 1, "three": 3})
    assert hint in str(error.value)
    assert repr(name) in str(error.value)
