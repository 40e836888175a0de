"""What holds of every registered algorithm, on tiny networks."""

from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mulv.agents import ALGORITHMS
from mulv.agents.drqv2 import DrQV2, DrQV2Config
from mulv.agents.sac import SAC, SACConfig
from mulv.core.errors import MulvError
from mulv.core.pink import pink_noise
from mulv.core.spec import EnvSpec
from mulv.run import compiled
from tests.agents.support import (
    KEY,
    assert_the_return_is_found,
    initial,
    leaves,
    observations,
    random_batches,
    run,
    same,
    tiny,
    trained_parts,
)

LANES = 3
SCAN = 4  # updates in a scan: one length, so that it is compiled once
pytestmark = pytest.mark.usefixtures("plain_convolutions")


@pytest.fixture(scope="module", params=ALGORITHMS)
def name(request):
    return request.param


@pytest.fixture
def values(name):
    """For what holds only where returns are learned from."""
    if ALGORITHMS[name].copies_data:
        pytest.skip(f"{name} learns nothing but actions, and draws nothing")


@pytest.fixture(scope="module")
def agent(name):
    return tiny(name)


@pytest.fixture(scope="module")
def state(agent):
    return initial(agent, KEY)


@pytest.fixture(scope="module")
def batch(agent):
    return random_batches(agent, 1)


@pytest.fixture(scope="module")
def updated(agent, state, batch):
    return run(agent, state, batch)


def test_one_update_changes_every_trained_leaf(state, updated):
    before, after = (leaves(trained_parts(s)) for s in (state, updated[0]))
    assert len(before) > 0
    assert all(not np.array_equal(b, a) for b, a in zip(before, after, strict=True))


@pytest.mark.usefixtures("values")
def test_targets_move_by_tau_towards_the_new_parameters(agent, state, updated):
    targets = [field for field in state._fields if field.startswith("target_")]
    assert targets
    for field in targets:
        online = getattr(updated[0], field.removeprefix("target_")).params
        old, new = getattr(state, field), getattr(updated[0], field)
        for o, n, to in zip(leaves(old), leaves(new), leaves(online), strict=True):
            np.testing.assert_allclose(n, o + agent.config.tau * (to - o), rtol=1e-5, atol=1e-7)


def test_metrics_are_finite_scalars(updated):
    _, metrics, finite = updated
    assert finite
    assert all(np.shape(value) == () and np.isfinite(value) for value in metrics.values())


@pytest.mark.usefixtures("values")
def test_a_bad_reward_is_reported_as_not_finite(agent, state, batch):
    reward = batch.reward.copy()
    reward[0, 0] = np.nan
    assert run(agent, state, batch._replace(reward=reward))[2] is False


def test_every_leaf_of_the_state_is_an_array(state):
    assert all(eqx.is_array(leaf) for leaf in jax.tree.leaves(state))


def test_the_state_keeps_its_structure_shapes_and_types(state, updated):
    before, after = (jax.tree.map(lambda x: (x.shape, x.dtype), s) for s in (state, updated[0]))
    assert before == after


def test_same_key_and_batch_give_the_same_bits(agent, state, batch, updated):
    again = run(agent, state, batch)
    assert same(again[:2], updated[:2])


@pytest.mark.usefixtures("values")
def test_an_update_depends_on_its_key(agent, state, batch, updated):
    assert not same(run(agent, state, batch, jax.random.key(1))[0], updated[0])


@pytest.mark.usefixtures("values")
def test_an_update_depends_on_its_number(agent, state, batch, updated):
    assert not same(run(agent, state, batch, first=1)[0], updated[0])


def test_initial_parameters_depend_on_the_key(agent, state):
    assert same(initial(agent, KEY), state)
    assert not same(initial(agent, jax.random.key(1)), state)


def test_a_scan_of_updates_equals_single_updates(agent, state):
    batches = random_batches(agent, SCAN, seed=1)
    scanned, metrics, _ = run(agent, state, batches)
    single = state
    for i in range(SCAN):
        one = jax.tree.map(lambda leaf, i=i: leaf[i : i + 1], batches)
        single, last_metrics, _ = run(agent, single, one, first=i)
    for s, o in zip(leaves((scanned, metrics)), leaves((single, last_metrics)), strict=True):
        np.testing.assert_allclose(s, o, rtol=1e-4, atol=1e-5)


def act(agent, state, carry, obs, first, step=0, key=KEY, deterministic=False):
    return compiled.act(
        agent, compiled.pack(state), carry, obs, first, key, jnp.int32(step), deterministic=deterministic
    )


@pytest.fixture(scope="module")
def lanes(agent, state):
    """Memories one step into an episode, the next observations, and which lanes begin another there."""
    obs = observations(agent.spec, np.random.default_rng(3), 2, LANES)
    carry = act(agent, state, compiled.init_carry(agent, LANES), obs[0], np.ones(LANES, bool))
    return carry, obs[1], np.array([False, True, False])


def test_acting_in_several_lanes_equals_acting_in_each(agent, state, lanes):
    carry, obs, first = lanes
    after = act(agent, state, *lanes, step=7)
    noise = pink_noise(KEY, jnp.int32(7), (LANES, agent.spec.act_dim), agent.octaves)
    for i in range(LANES):
        mine, a_prev = jax.tree.map(lambda leaf, i=i: leaf[i], carry)
        if first[i]:
            mine, a_prev = agent.init_memory(), jnp.zeros_like(a_prev)
        mine = agent.observe(state, mine, a_prev, jnp.zeros(()), jnp.asarray(obs[i]), KEY)
        np.testing.assert_allclose(after.action[i], agent.act(state, mine, noise[i]), rtol=1e-5, atol=1e-6)
        for together, alone in zip(leaves(after.memory), leaves(mine), strict=True):
            np.testing.assert_allclose(together[i], alone, rtol=1e-5, atol=1e-6)


def test_deterministic_actions_ignore_the_key(agent, state, lanes):
    one, other = (
        act(agent, state, *lanes, key=jax.random.key(k), step=k, deterministic=True).action for k in (0, 1)
    )
    np.testing.assert_array_equal(one, other)


def test_exploring_actions_depend_on_the_step(agent, state, lanes):
    one, other = (act(agent, state, *lanes, step=s).action for s in (0, 1))
    assert not np.array_equal(one, other)


def test_lanes_with_the_same_observation_explore_differently(agent, state):
    spec = agent.spec
    carry, obs = compiled.init_carry(agent, LANES), np.zeros((LANES, *spec.obs_shape), spec.obs_dtype)
    actions = act(agent, state, carry, obs, np.ones(LANES, bool)).action
    assert len(np.unique(actions, axis=0)) == LANES


def test_actions_lie_in_the_unit_box(agent, state, lanes):
    carry, obs, first = lanes
    extreme = 1e6 * obs if obs.dtype == np.float32 else np.where(obs > 127, np.uint8(255), np.uint8(0))
    assert np.abs(act(agent, state, carry, extreme, first).action).max() <= 1.0


def test_an_episode_does_not_remember_the_one_before(agent, state, lanes):
    carry, obs, _ = lanes
    begins = np.ones(LANES, bool)
    used = act(agent, state, carry, obs, begins, deterministic=True)
    fresh = act(agent, state, compiled.init_carry(agent, LANES), obs, begins, deterministic=True)
    assert same(used, fresh)


def test_observing_alone_leaves_the_memory_that_acting_does(agent, state, lanes):
    seen = compiled.observe(agent, compiled.pack(state), *lanes, KEY, jnp.int32(0))
    acted = act(agent, state, *lanes)
    assert same(seen.memory, acted.memory)
    assert not np.asarray(seen.action).any()
    assert np.asarray(acted.action).any()


def test_a_memory_depends_on_the_action_taken_before(agent, state, lanes):
    carry, obs, _ = lanes
    other = carry._replace(action=-carry.action)
    going_on = np.zeros(LANES, bool)
    one, two = (act(agent, state, c, obs, going_on, deterministic=True).memory for c in (carry, other))
    assert not same(one, two)


@pytest.mark.usefixtures("values")
@pytest.mark.parametrize(
    "changes",
    [
        {"scale_rewards": True},
        {"normalise_observations": False},
        {"gamma": 0.5, "n_step": 3},
        {"double_q": "mean"},
    ],
)
def test_an_option_changes_what_is_learned(name, agent, state, changes, updated):
    if changes.items() <= vars(agent.config).items() or not changes.keys() <= vars(agent.config).keys():
        pytest.skip(f"{name} is like that, or has no such option")
    variant = tiny(name, **changes)
    batch = random_batches(agent, 1)  # the same numbers, cut as the variant asks
    if "gamma" in changes:
        assert (variant.batch_spec.gamma, variant.batch_spec.n_step) == (0.5, 3)
        batch = batch._replace(discount=np.where(batch.discount > 0, np.float32(0.5**3), 0.0).astype("f4"))
    got, _, finite = run(variant, state, batch)
    assert finite
    assert not same(trained_parts(got), trained_parts(updated[0]))


@pytest.mark.usefixtures("values")
def test_the_critic_finds_the_return_of_terminal_steps(agent):
    assert_the_return_is_found(agent, rounds=400 // SCAN, updates=SCAN)


@pytest.mark.parametrize("field", ["window", "n_step", "batch_size", "gamma", "learning_rate", "tau"])
def test_a_setting_out_of_range_is_named(agent, field):
    if not hasattr(agent.config, field):
        pytest.skip(f"no {field} here")
    with pytest.raises(MulvError, match=field):
        replace(agent.config, **{field: 0})


@pytest.mark.parametrize(
    ("agent", "config", "shape"), [(SAC, SACConfig, (3,)), (DrQV2, DrQV2Config, (64, 64, 3))]
)
def test_discrete_actions_are_refused(agent, config, shape):
    with pytest.raises(MulvError, match="discrete"):
        agent(config(), EnvSpec(shape, 2, discrete=True))


@pytest.mark.parametrize("name", ["mulv", "sac"])
def test_a_policy_that_learns_every_second_update_rests_in_between(name):
    agent = tiny(name, policy_every=2)
    state, batches = initial(agent, KEY), random_batches(agent, 2)
    parts = []
    for number in range(2):
        one = jax.tree.map(lambda leaf, i=number: leaf[i : i + 1], batches)
        after, metrics, finite = run(agent, state, one, first=number)
        assert finite
        same_policy = same((state.actor, state.log_temperature), (after.actor, after.log_temperature))
        parts.append((same_policy, float(metrics["train/actor_grad_norm"]) > 0))
        critic = "critic" if name == "mulv" else "critics"
        assert not same(getattr(state, critic), getattr(after, critic))
        state = after
    assert parts == [(True, False), (False, True)]  # it rests first, and reports nothing
