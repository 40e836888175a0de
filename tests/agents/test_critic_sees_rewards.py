"""Critics that see past rewards, which are there while learning, and policies that never do."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mulv.agents import ALGORITHMS
from mulv.agents.base import normalise_window, past_rewards
from mulv.agents.sac import SACConfig
from mulv.core.normalise import RunningMoments
from mulv.core.spec import EnvSpec
from mulv.core.types import Window
from mulv.run import compiled
from tests.agents.support import KEY, VECTORS, initial, leaves, random_batches, run, same, tiny, trained_parts

GRU = {"recurrence.units": 8, "recurrence.direct": 2}
VARIANTS = {
    "mulv": ("mulv", {}),
    "mulv-gru": ("mulv", GRU),
    "mulv-ddpg": ("mulv", {"policy": "ddpg"}),
    "mulv-window": ("mulv", {"policy_reads_window": True}),
    "mulv-gru-window": ("mulv", GRU | {"policy_reads_window": True}),
    "sac": ("sac", {}),
}


@pytest.fixture(scope="module", params=VARIANTS)
def agent(request):
    name, options = VARIANTS[request.param]
    return tiny(name, critic_sees_rewards=True, **options)


@pytest.fixture(scope="module")
def learned(agent):
    return run(agent, initial(agent, KEY), random_batches(agent, 3))[0]


def memories(agent, rewards: tuple[float, float]) -> Window:
    """A memory of two steps, with these rewards."""
    obs, key = jnp.array([[0.5, -1.0, 2.0], [0.4, -0.8, 1.0]]), jax.random.key(1)
    state, memory, action = None, agent.init_memory(), jnp.zeros(VECTORS.act_dim)
    for o_h, r_prev in zip(obs, rewards, strict=True):
        memory = agent.observe(state, memory, action, jnp.float32(r_prev), o_h, key)
        action = jnp.full(VECTORS.act_dim, 0.3)
    return memory


def test_policies_act_alike_whatever_the_rewards_were(agent, learned):
    noise = jnp.array([0.3, -0.7])
    for draw in (None, noise):
        one, other = (agent.act(learned, memories(agent, r), draw) for r in ((0.0, 1.0), (0.0, -4.0)))
        np.testing.assert_array_equal(one, other)


def test_critics_do_not(agent, learned):
    action = jnp.zeros(VECTORS.act_dim)
    one, other = (agent.q_values(learned, memories(agent, r), action) for r in ((0.0, 1.0), (0.0, -4.0)))
    assert np.abs(one - other).min() > 1e-4


def test_without_the_option_nothing_depends_on_rewards_of_the_past():
    for name in ("mulv", "sac"):
        agent = tiny(name)
        batch = random_batches(agent, 1)
        other = jax.tree.map(np.copy, batch)
        other.x_h.rewards[:], other.x_hn.rewards[:] = 7.0, -7.0
        state = initial(agent, KEY)
        assert same(run(agent, state, batch), run(agent, state, other))


def test_the_policys_step_depends_on_rewards_through_the_critic_alone(agent):
    """Actors of two states learn from windows that differ in rewards only, under critics that ignore them."""
    batch = random_batches(agent, 1)
    state = initial(agent, KEY)
    after = run(agent, state, batch)[0]
    changed = [
        not np.array_equal(a, b) for a, b in zip(leaves(state.actor), leaves(after.actor), strict=True)
    ]
    assert all(changed)
    other = jax.tree.map(np.copy, batch)
    other.x_h.rewards[:] += 3.0
    before, moved = leaves(trained_parts(after)), leaves(trained_parts(run(agent, state, other)[0]))
    assert any(not np.array_equal(a, b) for a, b in zip(before, moved, strict=True))


def test_an_acting_agent_is_told_the_rewards(agent, learned):
    """What the trainer carries is what the replay cuts: the reward that came with each observation."""
    packed, carry = compiled.pack(learned), compiled.init_carry(agent, 2)
    obs, no = np.ones((2, 3), np.float32), np.zeros(2, bool)
    carry = compiled.act(agent, packed, carry, obs, ~no, KEY, 0, np.float32([9, 9]), deterministic=True)
    carry = compiled.act(agent, packed, carry, obs, no, KEY, 1, np.float32([2, 3]), deterministic=True)
    np.testing.assert_array_equal(carry.memory.rewards, [[0, 2], [0, 3]])  # an episode begins without one


def test_a_hidden_state_that_only_rewards_tell_is_valued_right():
    """The coming reward is the last one again, of which observations say nothing."""
    errors = {}
    for sees in (True, False):
        agent = tiny("sac", critic_sees_rewards=sees, gamma=0.5)
        batches = random_batches(agent, 150)
        coming = np.sign(batches.x_h.rewards[..., -1]).astype(np.float32)
        batches.x_h.rewards[..., -1] = coming
        batches = batches._replace(reward=coming, discount=np.zeros_like(coming))
        batches = batches._replace(future=batches.future._replace(rewards=coming[..., None]))
        _, metrics, _ = run(agent, initial(agent, KEY), batches)
        errors[sees] = float(metrics["train/critic_loss"])
    assert errors[True] < 0.2 < 1.0 < errors[False]  # two critics, each off by 1 without rewards


def test_discrete_actions_are_chosen_by_a_critic_that_does_not_see_rewards():
    config = tiny("mulv", critic_sees_rewards=True).config
    agent = ALGORITHMS["mulv"].agent(config, replace(VECTORS, discrete=True))
    plain = ALGORITHMS["mulv"].agent(replace(config, critic_sees_rewards=False), EnvSpec((3,), 2, True))
    shapes = [jax.tree.map(jnp.shape, jax.eval_shape(a.init, KEY)) for a in (agent, plain)]
    assert shapes[0] == shapes[1]


def test_fading_scales_what_is_back_and_not_the_newest():
    """Weights of 1, 1, 1/2, 1/3 steps back with p = 1, on observations, actions and rewards alike."""
    config = SACConfig(window=4, normalise_observations=False, fading=1.0)
    x = Window(jnp.ones((4, 3)), jnp.ones((3, 2)), jnp.ones(4, bool), jnp.ones(4))
    seen = normalise_window(config, None, x)
    weights = np.array([1 / 3, 1 / 2, 1, 1])
    np.testing.assert_allclose(seen.obs, weights[:, None] * np.ones((4, 3)), rtol=1e-6)
    np.testing.assert_allclose(seen.actions, weights[:3, None] * np.ones((3, 2)), rtol=1e-6)
    np.testing.assert_allclose(past_rewards(config, RunningMoments(()), seen), weights, rtol=1e-4)
    plain = normalise_window(replace(config, fading=0.0), None, x)
    np.testing.assert_array_equal(plain.obs, x.obs)
