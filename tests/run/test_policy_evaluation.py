"""Fixed data and a fixed policy: what the critic is trained towards."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mulv.agents.sac import SAC, SACConfig
from mulv.core.errors import MulvError
from mulv.core.spec import BatchSpec, Step
from mulv.data import Replay, ReplayLayout
from mulv.nets.trunk import TrunkConfig
from mulv.run import compiled
from mulv.run.diagnostics.critic_agreement import agreement, predicted_values
from mulv.run.diagnostics.policy_evaluation import (
    EvaluationData,
    evaluate_fixed_policy,
    places,
    policy_actions,
)
from mulv.run.diagnostics.true_values import TruthOptions, measure_true_values
from tests.agents.support import KEY, initial, leaves, random_batches, same, tiny
from tests.run.line import GAMMA, HORIZON, SPEC, Back, Line, make

STATE = compiled.init(Back(), jax.random.key(0))


def recorded(directory, episodes: int, lanes: int = 1, capacity: int = 10_000) -> Replay:
    """Random actions on the line."""
    replay = Replay.create(directory, ReplayLayout.of(SPEC, lanes=lanes, capacity=capacity, slack=0))
    rng, env = np.random.default_rng(0), Line()

    def add(lane, obs, action, reward, terminated, truncated, step):
        values = (obs, action, np.float32(reward), terminated, truncated, step)
        replay.append(Step(np.asarray([lane]), *(np.asarray(value)[None] for value in values)))

    for episode in range(episodes):
        lane, (obs, _) = episode % lanes, env.reset(seed=episode)
        add(lane, obs, np.zeros(1, np.float32), 0, False, False, 0)
        for step in range(1, 9):
            action = rng.uniform(-0.6, 0.6, 1).astype(np.float32)
            obs, reward, terminated, _, _ = env.step(action)
            add(lane, obs, action, reward, terminated, step == 8, step)
            if terminated:
                break
    return replay


def test_policy_actions_come_from_the_policys_own_memory(tmp_path):
    replay = recorded(tmp_path, episodes=6, lanes=2)
    expected = []
    for lane in range(2):
        t = np.arange(replay.counts[lane])
        obs, step = replay.column("obs", lane, t)[:, 0], replay.column("step", lane, t)
        expected += [0.0 if step[i] == 0 else -obs[i - 1] / 2 for i in t]
    assert policy_actions(Back(), STATE, replay)[:, 0] == pytest.approx(expected)


def test_batches_hold_the_policys_action_where_the_backup_ends(tmp_path):
    replay = recorded(tmp_path, episodes=6, lanes=2)
    rows = np.arange(len(places(replay)), dtype=np.float32)
    data = EvaluationData(replay, rows[:, None], -rows[:, None])
    batch, a_hn = data.sample(BatchSpec(64, 3, 2, 1, 0.9), 2, np.random.default_rng(0))
    assert batch.x_h.obs.shape == (2, 64, 3, 1)
    assert np.array_equal(a_hn, -batch.x_hn.obs[..., -1, :])
    steps = batch.x_hn.obs[..., -1, 0] - batch.x_h.obs[..., -1, 0]
    assert set(np.unique(steps)) == {1, 2}


def test_a_replay_that_came_round_is_refused(tmp_path):
    with pytest.raises(MulvError, match="come round"):
        places(recorded(tmp_path, episodes=6, capacity=8))


@pytest.mark.parametrize("name", ["sac", "mulv"])
def test_the_policy_is_left_alone_and_all_else_learns(name):
    agent = tiny(name)
    state, batch = initial(agent, KEY), jax.tree.map(lambda leaf: leaf[0], random_batches(agent, 1))
    learned, _ = jax.jit(agent.update_critic)(state, batch, batch.a_h, KEY)
    assert same(learned.actor, state.actor)
    assert same(learned.log_temperature, state.log_temperature)
    names = {"sac": ("critics", "target_critics"), "mulv": ("representation", "critic", "target_critic")}
    for part in names[name]:
        before, after = leaves(getattr(state, part)), leaves(getattr(learned, part))
        assert all(not np.array_equal(x, y) for x, y in zip(before, after, strict=True) if x.size > 1)


@pytest.mark.parametrize("name", ["sac", "mulv"])
@pytest.mark.parametrize("scale", [1.0, 10.0])
def test_targets_are_of_the_given_actions_without_entropy(name, scale):
    agent = tiny(name, normalise_observations=False, scale_rewards=True)
    state, batch = initial(agent, KEY), jax.tree.map(lambda leaf: leaf[0], random_batches(agent, 1))
    moments = state.reward_moments.update(jnp.full(8, scale))  # the rewards' root mean square is `scale`
    state = state._replace(reward_moments=moments)
    frozen = batch._replace(future=batch.future._replace(rewards=jnp.full_like(batch.future.rewards, scale)))
    a_hn = -0.5 * jnp.asarray(batch.a_h)
    values = jax.vmap(lambda x, a: agent.q_values(state, x, a))(frozen.x_hn, a_hn)
    expected = frozen.reward + frozen.discount * values.min(axis=-1)
    _, metrics = jax.jit(agent.update_critic)(state, frozen, a_hn, KEY)
    assert scale * metrics["train/target_mean"] == pytest.approx(float(expected.mean()), rel=1e-4)


def test_an_agent_without_a_critic_says_so():
    agent = tiny("bc")
    assert agent.q_values(initial(agent, KEY), agent.init_memory(), jnp.zeros(2)) is None


def test_a_critic_learns_the_true_values_of_a_fixed_policy(tmp_path):
    replay = recorded(tmp_path, episodes=300)
    data = EvaluationData(replay, replay.obs_at(places(replay)), policy_actions(Back(), STATE, replay))
    config = SACConfig(
        window=2, gamma=GAMMA, batch_size=64, trunk=TrunkConfig("mlp", 64, 2), learning_rate=1e-3
    )
    agent = SAC(config, SPEC)
    state = compiled.init(agent, jax.random.key(0))
    options = TruthOptions(states=40, every=2, actions=5, repeats=1, horizon=HORIZON)
    truth = measure_true_values(Back(), STATE, make, options)
    true = truth.returns(GAMMA)[..., 0]
    before = agreement(predicted_values(agent, state, truth).mean(-1), true)
    learned = evaluate_fixed_policy(agent, state, data, 800, np.random.default_rng(0), jax.random.key(1))
    after = agreement(predicted_values(agent, learned, truth).mean(-1), true)
    assert after.advantage_correlation > 0.95
    assert after.value_rmse < 0.3 < before.value_rmse
