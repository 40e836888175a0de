"""Behaviour cloning: densities against closed forms; a linear expert is found where the window shows it."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

from mulv.agents.bc import BC, BCConfig
from mulv.core.errors import MulvError
from mulv.core.gaussian import TanhNormal
from mulv.core.spec import EnvSpec
from mulv.core.types import Batch, Future, Window
from mulv.nets.trunk import TrunkConfig
from mulv.run import compiled

OBS, ACT, SPREAD, SIZE = 3, 2, 0.3, 256
WEIGHTS = np.random.default_rng(0).normal(size=(OBS, ACT)).astype(np.float32) * 0.5


def test_the_density_is_that_of_samples_and_integrates_to_one():
    policy = TanhNormal(jnp.array([0.4]), jnp.array([-0.7]))
    noise = jnp.linspace(-3, 3, 13)[:, None]
    actions, log_prob = jax.vmap(policy.sample_and_log_prob)(noise)
    np.testing.assert_allclose(jax.vmap(policy.log_prob)(actions), log_prob, rtol=1e-4, atol=1e-4)
    grid = jnp.linspace(-1, 1, 20001)[:, None]
    assert jnp.trapezoid(jnp.exp(jax.vmap(policy.log_prob)(grid)), grid[:, 0]) == pytest.approx(1, abs=1e-3)


def test_actions_at_the_edge_have_a_finite_density_and_gradient():
    def value(mean):
        return TanhNormal(mean, jnp.zeros(2)).log_prob(jnp.array([1.0, -1.0]))

    assert jnp.isfinite(value(jnp.zeros(2)))
    assert jnp.isfinite(jax.grad(value)(jnp.zeros(2))).all()


def expert_batches(spread: float, back: int = 0, batches: int = 250) -> Batch:
    """u = W o_{h−back} + noise, a = tanh(u): Gaussian before the tanh, linear in one observation."""
    rng, lead, window = np.random.default_rng(1), (batches, SIZE), 2

    def normal(*shape: int) -> np.ndarray:
        return rng.normal(size=lead + shape).astype(np.float32)

    obs, nothing = normal(window, OBS), np.zeros(lead, np.float32)
    actions = np.tanh(obs[..., -1 - back, :] @ WEIGHTS + spread * normal(ACT))
    mask = np.ones((*lead, window), bool)
    x = Window(obs, np.zeros((*lead, window - 1, ACT), np.float32), mask, np.zeros_like(mask, np.float32))
    some, none = np.ones((*lead, 1), bool), np.zeros((*lead, 1), bool)
    future = Future(actions[..., None, :], nothing[..., None], normal(1, OBS), some, none)
    return Batch(x, actions, nothing, nothing, x, future, nothing)


def without_memory(batch: Batch) -> Batch:
    """The same with windows of the newest observation alone."""
    whole = batch.x_h
    x = Window(whole.obs[:, :, -1:], whole.actions[:, :, :0], whole.mask[:, :, -1:], whole.rewards[:, :, -1:])
    return batch._replace(x_h=x, x_hn=x)


def clone(batches: Batch, loss: str = "mse", key: int = 0) -> tuple[tuple, dict[str, np.ndarray]]:
    """The state after all batches, and metrics of the last, which nothing was learned from before."""
    window = batches.x_h.obs.shape[2]
    trunk = TrunkConfig("mlp", 32, 1, "elu")
    config = BCConfig(window=window, loss=loss, learning_rate=1e-2, trunk=trunk, batch_size=SIZE)
    agent = BC(config, EnvSpec((OBS,), ACT))
    fresh = compiled.init(agent, jax.random.key(0))
    packed, metrics, finite = compiled.update(agent, fresh, batches, jax.random.key(key), np.int32(key))
    assert finite.all()
    return packed, metrics


def test_a_linear_expert_is_recovered():
    batches = expert_batches(spread=0.0)
    assert clone(batches)[1]["train/action_mse"] < 0.02 * batches.a_h.var()


def test_an_expert_that_acts_on_the_past_needs_a_window_that_holds_it():
    batches = expert_batches(spread=0.0, back=1)
    with_memory, without = (clone(b)[1]["train/action_mse"] for b in (batches, without_memory(batches)))
    assert with_memory < 0.02 * batches.a_h.var()
    assert without > 0.8 * batches.a_h.var()


def test_maximum_likelihood_finds_the_experts_density():
    """On the last batch, its mean log density under the expert itself is what there is to reach."""
    batches = expert_batches(SPREAD)
    mean, actions = batches.x_h.obs[-1, :, -1] @ WEIGHTS, batches.a_h[-1].astype(np.float64)
    density = scipy.stats.norm.logpdf(np.arctanh(actions), mean, SPREAD) - np.log1p(-np.square(actions))
    _, metrics = clone(batches, "likelihood")
    assert metrics["train/log_prob"] == pytest.approx(density.sum(-1).mean(), abs=0.06)
    assert metrics["train/action_mse"] == pytest.approx(np.mean((actions - np.tanh(mean)) ** 2), rel=0.1)
    # The squared error finds the actions as well, and nothing of how they spread.
    _, other = clone(batches, "mse")
    assert other["train/action_mse"] == pytest.approx(float(metrics["train/action_mse"]), rel=0.1)
    assert other["train/log_prob"] < metrics["train/log_prob"] - 0.5


def test_rewards_and_keys_play_no_part():
    batch = expert_batches(spread=0.1)
    other = batch._replace(reward=batch.reward + 5, discount=batch.discount + 1)
    for a, b in zip(clone(batch)[0], clone(other, key=1)[0], strict=True):
        np.testing.assert_array_equal(a, b)


def test_discrete_actions_are_refused():
    with pytest.raises(MulvError, match="discrete"):
        BC(BCConfig(), EnvSpec((OBS,), 2, discrete=True))


def test_frames_are_refused_in_one_line():
    with pytest.raises(MulvError, match="BC learns from vectors, and this task"):
        BC(BCConfig(), EnvSpec((64, 64, 3), 2, obs_dtype="uint8"))
