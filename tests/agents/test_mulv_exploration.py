"""The bonus enters the backup as the algorithm says, from an ellipsoid of the data, and only when asked."""

from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mulv.agents.base import normalise_window
from mulv.agents.mulv.agent import MuLV
from mulv.agents.mulv.config import MuLVConfig
from mulv.agents.mulv.exploration import Bonus
from mulv.agents.mulv.normalisation import normalise_batch
from mulv.core.elliptical import Ellipsoid
from mulv.core.errors import MulvError
from mulv.core.memory import push
from mulv.core.options import with_options
from mulv.core.spec import EnvSpec
from mulv.nets.trunk import TrunkConfig
from tests.agents.support import initial, random_batches, run, same

SPEC, KEY, REBUILD, ROWS = EnvSpec((3,), 2), jax.random.key(0), 3, 4
OFF = with_options(
    MuLVConfig(window=2, n_step=2, batch_size=8, trunk=TrunkConfig("mlp", 16, 1), learning_rate=1e-2),
    {"latent.dim": 4, "critic.features": 8, "elbo.future": 1},
)
ON = with_options(
    OFF, {"bonus.scale": 1.0, "bonus.rebuild": REBUILD, "bonus.rows": ROWS, "bonus.regularisation": 1.0}
)
AGENT = MuLV(ON, SPEC)


@pytest.fixture(scope="module")
def states():
    """After 0, 1, … updates, up to the first that rebuilds Σ, and the metrics of each."""
    state, batches = initial(AGENT, KEY), random_batches(AGENT, REBUILD + 1)
    history = [(state, {})]
    for i in range(REBUILD + 1):
        one = jax.tree.map(lambda leaf, i=i: leaf[i : i + 1], batches)
        state, metrics, finite = run(AGENT, state, one, first=i)
        assert finite
        history.append((state, metrics))
    return history


def test_without_a_bonus_there_is_no_state_for_one():
    off, on = (initial(MuLV(config, SPEC), KEY) for config in (OFF, ON))
    assert off.optimism is None
    assert on.optimism is not None
    assert same(off, on._replace(optimism=None))


def test_an_update_remembers_the_phi_of_its_first_rows(states):
    state, updated = states[0][0], states[1][0]
    batch = jax.tree.map(lambda leaf: jnp.asarray(leaf[0]), random_batches(AGENT, REBUILD + 1))
    seen = normalise_batch(ON, updated.obs_moments, updated.reward_moments, batch)
    representation, critic = state.representation.params, state.critic.params
    phi = jax.vmap(lambda x, a: critic.phi(representation.p(representation.encode(x), a)))(seen.x_h, seen.a_h)
    np.testing.assert_allclose(updated.optimism.rows[:ROWS], phi[:ROWS], rtol=1e-4, atol=1e-5)
    assert not updated.optimism.rows[ROWS:].any()


def test_sigma_is_rebuilt_from_them_when_due_and_only_then(states):
    whiteners = [np.asarray(state.optimism.ellipsoid.whitener) for state, _ in states]
    for before_due in whiteners[1:REBUILD]:
        np.testing.assert_array_equal(before_due, whiteners[0])
    due = states[REBUILD][0].optimism
    expected = Ellipsoid(16, 1.0).rebuilt(due.rows, jnp.float32(1000), ON.bonus.memory)
    np.testing.assert_allclose(due.ellipsoid.whitener, expected.whitener, rtol=1e-3, atol=1e-5)
    np.testing.assert_array_equal(
        due.measure, due.ellipsoid.whitener
    )  # sixteen directions for as many features
    assert [int(state.optimism.age) for state, _ in states] == [0, 1, 2, 0, 1]
    assert float(due.ellipsoid.count) == 1000


def test_the_bonus_is_nothing_until_sigma_has_seen_data(states):
    assert [float(metrics["train/bonus_mean"]) > 0 for _, metrics in states[1:]] == [False] * REBUILD + [True]


def optimism_over(rows: np.ndarray):
    """A state whose Σ has seen these rows."""
    fresh = initial(AGENT, KEY).optimism
    ellipsoid = fresh.ellipsoid.extended(jnp.asarray(rows, jnp.float32))
    return fresh._replace(ellipsoid=ellipsoid, measure=ellipsoid.measure(16))


@pytest.mark.parametrize(("use", "sign"), [("optimism", 1), ("pessimism", -1)])
@pytest.mark.parametrize("form", ["norm", "squared"])
def test_what_is_added_to_q_is_the_bonus_or_less_the_penalty(use, sign, form):
    rng = np.random.default_rng(0)
    rows, phi = rng.normal(size=(40, 16)), rng.normal(size=(8, 16)).astype(np.float32)
    norm = np.sqrt(np.sum(phi * np.linalg.solve(rows.T @ rows + np.eye(16), phi.T).T, axis=1))
    b = np.minimum(1.5 * (norm if form == "norm" else norm**2), 2.0)
    bonus = Bonus(
        with_options(
            replace(ON, gamma=0.5, n_step=3), {"bonus.use": use, "bonus.form": form, "bonus.scale": 1.5}
        )
    )
    added = bonus.added(optimism_over(rows))(jnp.asarray(phi))
    np.testing.assert_allclose(added, sign * (1 + 0.5 + 0.25) * b, rtol=1e-4)


def test_large_rewards_have_a_larger_limit():
    optimism, phi = optimism_over(np.eye(16)), 100 * jnp.eye(16)  # norms far above any of these limits
    for limit in (0.5, 2.0, 30.0):
        np.testing.assert_allclose(Bonus(with_options(ON, {"bonus.limit": limit})).of(optimism, phi), limit)


def test_without_a_state_nothing_is_added():
    assert Bonus(OFF).added(None) is None


def test_a_half_life_halves_the_bonus_as_data_comes_in():
    optimism, phi = optimism_over(np.eye(16)), jnp.eye(16)
    constant, halving = (
        Bonus(with_options(ON, {"bonus.half_life": h})).of(optimism, phi) for h in (None, 8.0)
    )  # 16 rows are two half-lives
    np.testing.assert_allclose(halving, constant / 4, rtol=1e-5)


def test_an_actor_feels_where_the_bonus_rises():
    rng = np.random.default_rng(1)
    phi, step = rng.normal(size=(2, 1, 16)).astype(np.float32)
    added = Bonus(ON).added(optimism_over(rng.normal(size=(40, 16))))
    slope = float(jnp.sum(jax.grad(lambda phi: jnp.sum(added(phi)))(jnp.asarray(phi)) * step))
    rise = (float(added(phi + 1e-2 * step)[0]) - float(added(phi - 1e-2 * step)[0])) / 2e-2
    assert slope == pytest.approx(rise, rel=1e-2)
    assert abs(rise) > 1e-3


def test_rewards_alone_have_a_value_of_their_own(states):
    """Of two heads that bootstrap from themselves, only that of Q believes in the b̂ of what comes."""
    batch = random_batches(AGENT, 1)
    batch = batch._replace(
        reward=np.ones_like(batch.reward),
        discount=np.full_like(batch.discount, 0.5),
        data_size=np.full_like(batch.data_size, 4.0),  # little data, so that b̂ is large
    )
    state = states[0][0]
    for round_ in range(300):  # of the length that is compiled already
        state, metrics, finite = run(AGENT, state, batch, first=round_)
        assert finite
    rewards = float(metrics["train/value_of_rewards"])
    entropy = float(metrics["train/ent_coef"] * metrics["train/entropy"])
    assert rewards == pytest.approx(2.0 + entropy, abs=0.5)  # 1 + ½ (V + entropy), forever
    assert float(metrics["train/q_mean"]) > rewards + 0.2


DISCRETE = replace(SPEC, discrete=True)
GREEDY = with_options(
    ON, {"discrete_policy": "greedy", "discrete_policy.exploration_rate": 0.0, "bonus.regularisation": 1e-3}
)


def tried(agent, action: int, x):
    """A state whose data is of one action at the window x alone, with ⟨φ, w⟩ = 0 everywhere."""
    state = initial(agent, KEY)
    representation, critic = state.representation.params, state.critic.params
    u = jax.vmap(representation.encode)(x)
    phi = jax.vmap(lambda u: critic.phi(representation.p(u, jnp.eye(2)[action])))(u)
    ellipsoid = state.optimism.ellipsoid.extended(jnp.repeat(phi, 100, axis=0))
    optimism = state.optimism._replace(ellipsoid=ellipsoid, measure=ellipsoid.measure(16))
    zero = critic.with_w(jnp.zeros_like(critic.w))
    return state._replace(critic=state.critic._replace(params=zero), target_critic=zero, optimism=optimism)


@pytest.mark.parametrize("action", [0, 1])
@pytest.mark.parametrize(("use", "chooses_tried"), [("optimism", False), ("pessimism", True)])
def test_an_untried_action_carries_its_bonus(action, use, chooses_tried):
    agent = MuLV(with_options(GREEDY, {"bonus.use": use}), DISCRETE)
    memory = push(agent.init_memory(), jnp.zeros(2), jnp.zeros(()), jnp.array([0.5, -1.0, 2.0]))
    x = normalise_window(GREEDY, initial(agent, KEY).obs_moments, memory)
    state = tried(agent, action, jax.tree.map(lambda leaf: leaf[None], x))
    explore = jax.jit(lambda state: agent.act(state, memory, jax.random.normal(KEY, (2,))))
    assert (int(jnp.argmax(explore(state))) == action) == chooses_tried


@pytest.mark.parametrize(("use", "minds"), [("optimism", False), ("pessimism", True)])
def test_who_does_not_explore_minds_a_penalty_and_no_bonus(use, minds):
    agent = MuLV(with_options(GREEDY, {"bonus.use": use}), DISCRETE)
    memory = push(agent.init_memory(), jnp.zeros(2), jnp.zeros(()), jnp.array([0.5, -1.0, 2.0]))
    x = normalise_window(GREEDY, initial(agent, KEY).obs_moments, memory)
    act = jax.jit(lambda state: jnp.argmax(agent.act(state, memory, None)))
    chosen = [int(act(tried(agent, a, jax.tree.map(lambda leaf: leaf[None], x)))) for a in (0, 1)]
    assert (chosen == [0, 1]) == minds
    assert (chosen[0] == chosen[1]) != minds


def test_values_of_a_backup_are_maxima_with_the_bonus():
    agent = MuLV(GREEDY, DISCRETE)
    batch = jax.tree.map(lambda leaf: jnp.asarray(leaf[0]), random_batches(agent, 1))
    batch = batch._replace(discount=jnp.full_like(batch.discount, 0.5))
    state = tried(agent, 0, batch.x_h)
    state = state._replace(target_critic=initial(agent, KEY).target_critic)
    critic, representation, added = (
        state.target_critic,
        state.target_representation,
        agent.bonus.added(state.optimism),
    )
    expected, without = [], []
    for i in range(ON.batch_size):
        x = jax.tree.map(lambda leaf, i=i: leaf[i], batch.x_hn)
        phi = jnp.stack([critic.phi(representation.p(representation.encode(x), a)) for a in jnp.eye(2)])
        values = jnp.min(jax.vmap(critic.values)(phi), axis=-1)
        expected.append(batch.reward[i] + 0.5 * jnp.max(values + added(phi)))
        without.append(batch.reward[i] + 0.5 * jnp.max(values))
    backup = partial(agent._backup, state, batch, KEY)
    targets, alone = agent.bonus.backups(state.optimism, critic, backup)
    np.testing.assert_allclose(targets, jnp.stack(expected), rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(alone, jnp.stack(without), rtol=1e-3, atol=1e-4)
    assert jnp.all(targets > alone + 0.1)


@pytest.mark.parametrize("spec", [SPEC, DISCRETE])
def test_without_a_bonus_nothing_of_it_is_in_the_program(spec):
    def program(config) -> str:
        agent = MuLV(config, spec)
        batch = jax.tree.map(lambda leaf: leaf[0], random_batches(agent, 1))
        return str(jax.make_jaxpr(agent.update)(jax.eval_shape(agent.init, KEY), batch, KEY))

    on = with_options(OFF, {"bonus.scale": 1e-3})
    assert program(OFF) == program(with_options(on, {"bonus": "none"}))
    assert program(OFF) != program(on)


def test_who_does_not_explore_asks_what_rewards_alone_are_worth():
    agent = MuLV(ON, replace(SPEC, discrete=True))
    state = initial(agent, KEY)
    memory = push(
        agent.init_memory(), jnp.zeros(agent.spec.act_dim), jnp.zeros(()), jnp.array([0.5, -1.0, 2.0])
    )

    @jax.jit
    def chosen(w, w_alone):
        """The greedy action where each critic's heads are one."""
        alone = state.optimism.rewards_alone._replace(params=jnp.stack([w_alone, w_alone], axis=1))
        critic = state.critic._replace(params=state.critic.params.with_w(jnp.stack([w, w], axis=1)))
        changed = state._replace(critic=critic, optimism=state.optimism._replace(rewards_alone=alone))
        return jnp.argmax(agent.act(changed, memory, None))

    w = state.critic.params.w[:, 0]
    assert chosen(w, w) == chosen(-w, w)
    assert chosen(w, w) != chosen(w, -w)  # the other critic's order of the two actions


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"bonus.scale": -1.0}, "bonus.scale is -1.0"),
        ({"bonus.rows": 9}, "bonus.rows is 9; it must be at most batch_size, 8"),
        ({"bonus.memory": 1.5}, "bonus.memory is 1.5"),
        ({"bonus.half_life": 0.0}, "bonus.half_life is 0.0"),
        ({"bonus.regularisation": 0.0}, "bonus.regularisation is 0.0"),
        ({"critic": "deep"}, "--critic closed_form"),
    ],
)
def test_a_bonus_that_cannot_be_is_named(changes, line):
    with pytest.raises(MulvError, match=line):
        with_options(ON, changes)
