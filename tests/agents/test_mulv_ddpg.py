"""µLV-Rep's planner with noise: what it chooses, what it is improved towards, and how the noise falls."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from mulv.agents.mulv.agent import MuLV
from mulv.agents.mulv.config import MuLVConfig
from mulv.agents.mulv.ddpg import NoisyPolicy
from mulv.agents.mulv.policy import ContinuousPolicy
from mulv.core.learner import start_training
from mulv.core.options import with_options
from mulv.core.spec import EnvSpec
from mulv.nets.trunk import TrunkConfig
from tests.agents.support import initial, random_batches

SPEC, KEY = EnvSpec((3,), 2), jax.random.key(0)
SMALL = with_options(
    MuLVConfig(window=2, batch_size=8, trunk=TrunkConfig("mlp", 16, 2)),
    {
        "latent.dim": 4,
        "critic.features": 32,
        "policy": "ddpg",
        "policy.noise.initial": 0.8,
        "policy.noise.final": 0.2,
        "policy.noise.steps": 1000,
    },
)
POLICY = NoisyPolicy(SMALL, SPEC)
CODES = jax.random.normal(jax.random.key(1), (64, 16))
BEST = jnp.array([0.5, -0.3])


def q(a):
    """Highest at BEST; the second head is the lower one."""
    value = -jnp.sum(jnp.square(a - BEST[None]), axis=-1)
    return jnp.stack([value + 1.0, value], axis=-1)


def test_without_noise_the_value_is_the_lower_q_of_the_mean():
    actor = POLICY.init(KEY)
    mean = jax.vmap(lambda u: actor(u).mode())(CODES)
    np.testing.assert_allclose(POLICY.value(actor, q, CODES, 0.0, KEY), q(mean)[:, 1], rtol=1e-6)
    assert not np.allclose(POLICY.value(actor, q, CODES, 0.5, KEY), q(mean)[:, 1])


def test_noise_within_updates_is_clipped_and_on_exploration_is_not():
    actor = eqx.tree_at(lambda a: a.head.weight, POLICY.init(KEY), replace_fn=jnp.zeros_like)  # mean 0
    near = POLICY._near(actor, CODES, 10.0, KEY)
    np.testing.assert_allclose(jnp.abs(near).max(), SMALL.policy.noise.clip, rtol=1e-6)
    noise = jax.random.normal(KEY, (500, 2))
    explored = jax.vmap(lambda n: POLICY.act(actor, q, CODES[0], 0.2, n))(noise)
    assert float(jnp.std(explored)) == pytest.approx(0.2, rel=0.1)
    assert float(jnp.abs(explored).max()) > SMALL.policy.noise.clip
    np.testing.assert_array_equal(POLICY.act(actor, q, CODES[0], 0.2, None), jnp.zeros(2))


def test_the_actor_is_improved_towards_the_best_action():
    optimiser = optax.adam(1e-2)
    trained = start_training(optimiser, POLICY.init(KEY))

    @eqx.filter_jit
    def step(trained, key):
        return POLICY.improve(trained, optimiser, q, CODES, jnp.float32(0.1), key)[0]

    for number in range(200):
        trained = step(trained, jax.random.key(number))
    mean = jax.vmap(lambda u: trained.params(u).mode())(CODES)
    np.testing.assert_allclose(mean, jnp.broadcast_to(BEST, mean.shape), atol=0.1)


@pytest.mark.parametrize(("rows", "std"), [(0, 0.8), (500, 0.5), (1000, 0.2), (9000, 0.2)])
def test_after_an_update_the_noise_is_as_small_as_the_data_is_large(rows, std):
    agent = MuLV(SMALL, SPEC)
    batch = jax.tree.map(lambda leaf: leaf[0], random_batches(agent, 1))
    batch = batch._replace(data_size=jnp.full(8, float(rows)))
    state, metrics = jax.jit(agent.update)(initial(agent, KEY), batch, KEY)
    assert float(jnp.exp(state.log_temperature.params)) == pytest.approx(std, rel=1e-5)
    assert "train/entropy" not in metrics


def test_the_planner_is_what_was_asked_for():
    assert isinstance(MuLV(SMALL, SPEC).policy, NoisyPolicy)
    assert isinstance(MuLV(with_options(SMALL, {"policy": "sac"}), SPEC).policy, ContinuousPolicy)
