"""How actions are chosen by Q: what the actor reads, and that a maximum over few actions is the maximum."""

import equinox as eqx
import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mulv
from mulv.agents.mulv.agent import MuLV
from mulv.agents.mulv.config import MuLVConfig
from mulv.agents.mulv.policy import DiscretePolicy, maximise
from mulv.api import evaluate_policy
from mulv.core.memory import push
from mulv.core.options import with_options
from mulv.core.spec import EnvSpec
from mulv.core.types import Batch
from mulv.nets.trunk import TrunkConfig
from tests.agents.support import initial, random_batches, run, same

SPEC, KEY = EnvSpec((3,), 2), jax.random.key(0)
SMALL = with_options(
    MuLVConfig(window=2, batch_size=8, trunk=TrunkConfig("mlp", 16, 2)),
    {"latent.dim": 4, "critic.features": 32},
)


def test_the_actor_reads_the_moving_average_of_the_encoder():
    agent = MuLV(SMALL, SPEC)
    state = initial(agent, KEY)

    def action(state) -> np.ndarray:
        return np.asarray(
            agent.act(
                state,
                push(agent.init_memory(), jnp.zeros(agent.spec.act_dim), jnp.zeros(()), jnp.ones(3)),
                None,
            )
        )

    def moved(representation):
        return eqx.tree_at(lambda r: r.encoder, representation, replace_fn=lambda e: jax.tree.map(jnp.cos, e))

    trained = state.representation._replace(params=moved(state.representation.params))
    np.testing.assert_array_equal(action(state._replace(representation=trained)), action(state))
    averaged = state._replace(target_representation=moved(state.target_representation))
    assert not np.allclose(action(averaged), action(state))


def test_the_actor_climbs_the_q_before_the_step():
    """Rewards of a batch move Q now, and the actor from the next update on."""
    agent = MuLV(SMALL, SPEC)
    start, batches = initial(agent, KEY), random_batches(agent, 2)
    richer = batches._replace(reward=batches.reward + 100.0)

    def after(data: Batch, updates: int):
        return run(agent, start, jax.tree.map(lambda leaf: leaf[:updates], data))[0]

    def moved(updates: int, part: str) -> bool:
        poor, rich = (getattr(after(data, updates), part).params for data in (batches, richer))
        return not same(poor, rich)

    assert [moved(1, "critic"), moved(1, "actor"), moved(2, "actor")] == [True, False, True]


def test_a_hard_maximum_takes_the_best_and_a_soft_one_tends_to_it():
    q = jnp.array([0.3, 1.0, -2.0])
    value, probability = maximise(q, jnp.float32(0.5), "greedy")
    assert float(value) == 1.0
    np.testing.assert_array_equal(probability, [0, 1, 0])
    soft, probability = maximise(q, jnp.float32(0.5), "soft")
    assert float(soft) == pytest.approx(0.5 * np.log(np.sum(np.exp(np.asarray(q) / 0.5))), rel=1e-5)
    # A soft value is the mean of Q plus the entropy it weighs.
    entropy = -float(jnp.sum(probability * jnp.log(probability)))
    assert float(soft) == pytest.approx(float(probability @ q) + 0.5 * entropy, rel=1e-5)
    assert float(maximise(q, jnp.float32(0.01), "soft")[0]) == pytest.approx(1.0, abs=1e-3)


def test_a_discrete_policy_compares_every_action_by_its_lower_value():
    policy = DiscretePolicy(
        with_options(SMALL, {"discrete_policy": "greedy"}), EnvSpec((3,), 3, discrete=True)
    )
    values = jnp.array([[1.0, 5.0], [2.0, 3.0], [9.0, 0.0]])  # action, head: the lower ones are 1, 2, 0

    def q(a):
        return a @ values

    u = jnp.zeros((4, 8))  # not read: there is no actor
    np.testing.assert_allclose(policy.value((), q, u, jnp.float32(0.1), KEY), 2.0)
    action = policy.act((), q, u[0], jnp.float32(0.1), None)
    np.testing.assert_array_equal(action, [0, 1, 0])


@pytest.mark.parametrize("kind", ["soft", "greedy"])
def test_normal_noise_picks_discrete_actions_as_often_as_the_policy_says(kind):
    config = with_options(
        SMALL,
        {"discrete_policy": kind} | ({"discrete_policy.exploration_rate": 0.3} if kind == "greedy" else {}),
    )
    policy, values = DiscretePolicy(config, EnvSpec((3,), 3, discrete=True)), jnp.array([1.0, 1.4, 0.2])
    temperature, noise = jnp.float32(0.5), jax.random.normal(KEY, (20_000, 3))
    pick = jax.jit(
        jax.vmap(lambda n: policy.act((), lambda a: (a @ values)[:, None], jnp.zeros(8), temperature, n))
    )
    _, probability = maximise(values, temperature, kind)
    expected = probability if kind == "soft" else 0.7 * probability + 0.1
    np.testing.assert_allclose(jnp.mean(pick(noise), axis=0), expected, atol=0.012)


class Choice(gym.Env):
    """Pays for choosing the number seen a step ago: memory, and discrete actions."""

    observation_space = gym.spaces.Box(0.0, 1.0, (3,), np.float32)
    action_space = gym.spaces.Discrete(3)

    def _show(self):
        self.seen.append(int(self.np_random.integers(3)))
        return np.eye(3, dtype=np.float32)[self.seen[-1]]

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.seen = []
        self._show()
        return self._show(), {}

    def step(self, action):
        reward = float(action == self.seen[-2])
        return self._show(), reward, False, len(self.seen) > 22, {}


@pytest.mark.parametrize(
    ("window", "options"),
    [
        (2, {"discrete_policy": "soft"}),
        pytest.param(2, {"discrete_policy": "greedy"}, marks=pytest.mark.slow),
        pytest.param(
            2,
            {"latent": {"kind": "categorical", "dim": 16}, "elbo": {"posterior": "learned", "weight": 1.0}},
            marks=pytest.mark.slow,
        ),
        pytest.param(1, {}, marks=pytest.mark.slow),
    ],
)
def test_discrete_actions_are_learned_with_memory_and_not_without(window, options):
    small = {"latent": {"dim": 16}, "critic": {"kind": "closed_form", "features": 64}}
    agent = mulv.MuLV(
        Choice(),
        window=window,
        n_step=1,
        gamma=0.5,
        batch_size=64,
        learning_rate=3e-3,
        learning_starts=200,
        trunk=TrunkConfig("mlp", 32, 2),
        **small | options,
    )
    agent.learn(2500)
    agent.close()
    share = np.mean(evaluate_policy(agent, Choice, episodes=20).returns) / 21
    assert share > 0.95 if window == 2 else share < 0.5


def test_a_policy_that_reads_the_window_sees_what_its_code_leaves_out():
    """Under an encoder that says nothing, the action depends on the window only if the policy reads it."""
    for reads in (True, False):
        agent = MuLV(with_options(SMALL, {"policy_reads_window": reads}), SPEC)
        state = run(agent, initial(agent, KEY), random_batches(agent, 2))[0]
        silent = eqx.tree_at(
            lambda s: s.target_representation.encoder,
            state,
            replace_fn=lambda encoder: jax.tree.map(jnp.zeros_like, encoder),
        )
        acts = []
        for level in (0.5, -0.5):
            memory = push(agent.init_memory(), jnp.zeros(2), jnp.zeros(()), jnp.full(3, level))
            acts.append(np.asarray(agent.act(silent, memory, None)))
        assert np.array_equal(*acts) != reads
