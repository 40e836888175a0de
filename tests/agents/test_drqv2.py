"""DrQ-v2: its target, noise and gradients against computations by hand; it learns from what it sees."""

import math
from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mulv.agents.action_noise import ActionNoise, noise_std, perturb
from mulv.agents.drqv2 import PRESETS, DrQV2, DrQV2Config, actor_loss
from mulv.core.errors import MulvError
from mulv.core.options import with_options
from mulv.core.spec import EnvSpec
from mulv.core.types import Batch, Future, Window
from mulv.nets.stack import stack_frames
from mulv.nets.trunk import TrunkConfig
from mulv.run import compiled
from tests.agents.support import FRAMES, initial, leaves, random_batches, run, same, tiny

KEY, OTHER = (jax.random.key(seed, impl="rbg") for seed in (0, 1))  # compiles faster than the default
STILL = {"pad": 0, "noise.initial": 0.0, "noise.final": 0.0}  # nothing is drawn
pytestmark = pytest.mark.usefixtures("plain_convolutions")


@pytest.fixture(scope="module")
def still():
    agent = tiny("drqv2", **STILL)
    state = initial(agent, KEY)
    # Targets of their own, or a critic that took itself for its target would go unnoticed.
    return agent, state._replace(target_critic=initial(agent, OTHER).target_critic)


@pytest.fixture(scope="module")
def encodings(still):
    """Of the windows of a batch."""
    agent, state = still
    x_h = jax.tree.map(lambda leaf: leaf[0], random_batches(agent, 1).x_h)
    return jax.jit(jax.vmap(lambda x: state.encoder.params(stack_frames(x))))(x_h)


# ------------------------------------------------------------------------------------------------- targets


def layer(x: np.ndarray, linear) -> np.ndarray:
    return x @ np.asarray(linear.weight, np.float64) + np.asarray(linear.bias, np.float64)


def squeezed(e: np.ndarray, bottleneck) -> np.ndarray:
    y = layer(e, bottleneck.linear)
    return np.tanh((y - y.mean()) / np.sqrt(y.var() + 1e-5))  # its scale is 1 and its shift 0 at first


def hidden(x: np.ndarray, trunk) -> np.ndarray:
    for linear in trunk.layers[::2]:
        x = np.maximum(layer(x, linear), 0)
    return x


def by_hand(state, batch: Batch, lower) -> np.ndarray:
    """Targets one by one, in float64, from the convolutions on."""
    actor, critic, found = state.actor.params, state.target_critic, []
    encode = jax.jit(lambda x: state.encoder.params(stack_frames(x)))
    for i, (reward, discount) in enumerate(zip(batch.reward[0], batch.discount[0], strict=True)):
        e = np.asarray(encode(jax.tree.map(lambda leaf, i=i: leaf[0, i], batch.x_hn)), np.float64)
        a = np.tanh(layer(hidden(squeezed(e, actor.bottleneck), actor.trunk), actor.head))
        x = np.concatenate([squeezed(e, critic.bottleneck), a])
        heads = [jax.tree.map(lambda leaf, j=j: leaf[j], critic.heads) for j in (0, 1)]
        found.append(reward + discount * lower([layer(hidden(x, h.trunk), h.head)[0] for h in heads]))
    return np.array(found)


def test_targets_are_rewards_and_the_lower_value_of_the_policys_action(still):
    agent, state = still
    batch = random_batches(agent, 1)
    said = run(agent, state, batch, KEY)[1]["train/target_mean"]
    assert said == pytest.approx(by_hand(state, batch, min).mean(), abs=1e-4)
    for wrong in (max, np.mean):
        assert said != pytest.approx(by_hand(state, batch, wrong).mean(), abs=1e-3)


# --------------------------------------------------------------------------------------------------- noise


@given(st.floats(0, 1e5), st.integers(1, 10**5), st.floats(0, 2), st.floats(0, 2))
def test_noise_falls_on_a_line_and_stays(decisions, steps, first, last):
    noise = ActionNoise(first, last, steps)
    expected = np.interp(decisions, [0, steps], [first, last])
    assert noise_std(noise, jnp.float32(decisions)) == pytest.approx(expected, rel=1e-4, abs=1e-5)


def test_exploration_has_the_deviation_that_the_data_says_and_no_other_bound_than_the_box():
    agent = tiny("drqv2", noise=ActionNoise(0.8, 0.2, 1000))
    state, frames = initial(agent, KEY), np.zeros((4000, 16, 16, 3), np.uint8)
    carry, first = compiled.init_carry(agent, 4000), np.ones(4000, bool)
    for size, std in ((0.0, 0.8), (1000.0, 0.2)):
        packed = compiled.pack(state._replace(data_size=jnp.float32(size)))
        drawn = compiled.act(
            agent, packed, carry, frames, first, KEY, jnp.int32(0), deterministic=False
        ).action
        share = math.erf(0.5 / std / 2**0.5)  # within ±0.5; the mean is nearly zero at first
        assert np.mean(np.abs(drawn) < 0.5) == pytest.approx(share, abs=0.03)
        assert np.abs(drawn).max() <= 1


def test_noise_stays_in_the_box_and_leaves_the_gradient():
    mean, noise = jnp.array([0.9, -0.2, -0.95]), jnp.array([0.3, 0.1, -1.0])
    np.testing.assert_array_equal(perturb(mean, noise), np.float32([1.0, -0.2 + np.float32(0.1), -1.0]))
    np.testing.assert_array_equal(jax.grad(lambda m: jnp.sum(perturb(m, noise)))(mean), np.ones(3))


def test_an_update_remembers_how_much_data_there_was(still):
    agent, state = still
    batch = random_batches(agent, 1)
    assert run(agent, state, batch, KEY)[0].data_size == batch.data_size[0, 0]


# ------------------------------------------------------------------------------------------- who learns what


def test_the_encoder_learns_nothing_from_the_actor(still, encodings):
    """Without bootstrapping the critic's error does not depend on the actor, so neither does the encoder."""
    agent, state = still
    batch = random_batches(agent, 1)
    batch = batch._replace(discount=np.zeros_like(batch.discount))
    other = state._replace(actor=initial(agent, OTHER).actor)
    one, two = (run(agent, s, batch, KEY)[0] for s in (state, other))
    assert same(one.encoder, two.encoder)
    assert not same(one.actor, two.actor)
    # It would, were its encodings part of the actor's objective: their gradient there is not zero.
    gradient = jax.grad(lambda e: actor_loss(state.actor.params, one.critic.params, e, jnp.zeros((8, 2))))
    assert np.abs(gradient(encodings)).max() > 1e-6


def test_the_encoder_learns_from_the_critic(still):
    agent, state = still
    batch = random_batches(agent, 1)
    batch = batch._replace(discount=np.zeros_like(batch.discount))
    further = run(agent, state, batch._replace(reward=batch.reward - 50), KEY)[0]
    assert not same(run(agent, state, batch, KEY)[0].encoder, further.encoder)


def test_the_actor_climbs_the_lower_of_the_new_critics(still, encodings):
    agent, state = still
    batch = random_batches(agent, 1)
    after = run(agent, state, batch, KEY)[0]

    def lower(actor):
        return -jnp.mean(jnp.min(after.critic.params(encodings, jax.vmap(actor)(encodings)), axis=0))

    optimiser = optax.adam(agent.config.learning_rate)
    step, _ = optimiser.update(eqx.filter_grad(lower)(state.actor.params), state.actor.opt_state)
    expected = eqx.apply_updates(state.actor.params, step)
    for mine, its in zip(leaves(after.actor.params), leaves(expected), strict=True):
        np.testing.assert_allclose(
            mine, its, atol=2e-4
        )  # Adam's first step is the gradient's sign times 0.01


def test_each_window_is_encoded_once():
    """x_h and x_hn become numbers once each: the actor learns on the critic's encodings."""
    agent = tiny("drqv2")
    state, batch = jax.eval_shape(agent.init, KEY), random_batches(agent, 1)
    one = jax.tree.map(lambda leaf: leaf[0], batch)
    traced = str(jax.make_jaxpr(agent.update)(state, one, KEY))
    assert traced.count("f32[8,16,16,6] = convert_element_type") == 2


# --------------------------------------------------------------------------------------------------- learning


def wanted_at(obs: np.ndarray) -> np.ndarray:
    """By the first pixel of the older frame."""
    return obs[..., 0, 0, 0, :1] / np.float32(255) * 1.6 - 0.8


def bandit(batches: int, size: int = 32) -> Batch:
    """Pays −(a − b)², b being how bright the older of two grey frames was; actions are uniform."""
    rng, lead = np.random.default_rng(0), (batches, size)
    grey = rng.integers(0, 256, (*lead, 2, 1, 1, 1)).astype(np.uint8)
    obs = np.broadcast_to(grey, (*lead, 2, *FRAMES.obs_shape))
    actions = rng.uniform(-1, 1, (*lead, 1)).astype(np.float32)
    reward = -np.square(actions - wanted_at(obs))[..., 0].astype(np.float32)
    mask = np.ones((*lead, 2), bool)
    x = Window(obs, np.zeros((*lead, 1, 1), np.float32), mask, np.zeros_like(mask, np.float32))
    some, none = np.ones((*lead, 1), bool), np.zeros((*lead, 1), bool)
    future = Future(actions[:, :, None], reward[..., None], obs[:, :, 1:], some, none)
    return Batch(x, actions, reward, np.zeros(lead, np.float32), x, future, np.full(lead, 1e6, np.float32))


def regret(window: int, batches: Batch) -> float:
    """Of the greedy action on the last batch, learned on all before, with so much of their windows."""
    trunk = TrunkConfig("mlp", 64, 2)
    config = DrQV2Config(
        window=window, batch_size=32, learning_rate=1e-3, trunk=trunk, channels=8, halvings=1
    )
    agent, whole = DrQV2(config, replace(FRAMES, act_dim=1)), batches.x_h
    x = Window(
        whole.obs[:, :, -window:],
        whole.actions[:, :, : window - 1],
        whole.mask[:, :, -window:],
        whole.rewards[:, :, -window:],
    )
    learned_from = jax.tree.map(lambda leaf: leaf[:-1], batches._replace(x_h=x, x_hn=x))
    state, _, finite = run(agent, initial(agent, KEY), learned_from, KEY)
    assert finite
    choose = jax.jit(jax.vmap(lambda x: agent.act(state, x, None)))
    chosen = choose(jax.tree.map(lambda leaf: leaf[-1], x))
    return float(np.mean(np.square(chosen - wanted_at(whole.obs[-1]))))


@pytest.mark.slow
def test_what_an_older_frame_showed_is_learned_where_the_window_holds_it():
    batches = bandit(300)
    ignorance = wanted_at(batches.x_h.obs).var()
    assert regret(2, batches) < 0.1 * ignorance
    assert regret(1, batches) > 0.7 * ignorance


# ------------------------------------------------------------------------------------------------ bad input


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"tau": 0.0}, "tau is 0.0"),
        ({"pad": -1}, "pad is -1"),
        ({"halvings": 5}, "halvings is 5"),
        ({"noise.steps": 0}, "noise.steps is 0"),
        ({"noise.clip": -0.1}, "noise.clip is -0.1"),
        ({"feature_dim": 0}, "feature_dim is 0"),
        ({"normalise_observations": True}, "are for vectors"),
        ({"encode_changes": True}, "are for vectors"),
    ],
)
def test_a_setting_out_of_range_is_one_line(changes, said):
    with pytest.raises(MulvError, match=said):
        with_options(DrQV2Config(), changes)


def test_vectors_are_refused_with_what_to_do():
    with pytest.raises(MulvError, match=r"DrQ-v2 learns from frames, .* vectors of 3; choose .* -px"):
        DrQV2(DrQV2Config(), EnvSpec((3,), 1))


def test_the_papers_sizes():
    agent = DrQV2(PRESETS["paper"], EnvSpec((84, 84, 3), 6, obs_dtype="uint8"))
    state = jax.eval_shape(agent.init, KEY)
    assert state.critic.params.bottleneck.linear.weight.shape == (39200, 50)
    assert state.critic.params.heads.trunk.layers[0].weight.shape == (2, 56, 1024)
    assert state.encoder.params.convs[0].kernel.shape == (3, 3, 9, 32)
    assert (agent.batch_spec.batch_size, agent.batch_spec.n_step, agent.batch_spec.window) == (256, 3, 3)
