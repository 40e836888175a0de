"""The bonus enters the backup as the algorithm says, from an ellipsoid of the data, and only when asked."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mulv.agents.mulv.agent import MuLV
from mulv.agents.mulv.batches import as_networks_see
from mulv.agents.mulv.config import MuLVConfig
from mulv.agents.mulv.optimism import Bonus
from mulv.core.elliptical import Ellipsoid
from mulv.core.errors import MulvError
from mulv.core.spec import EnvSpec
from mulv.nets.trunk import TrunkConfig
from tests.agents.support import initial, random_batches, run, same

SPEC, KEY, REBUILD, ROWS = EnvSpec((3,), 2), jax.random.key(0), 3, 4
OFF = MuLVConfig(
    window=2,
    n_step=2,
    batch_size=8,
    latent_dim=4,
    features=8,  # of each twin
    future=1,
    trunk=TrunkConfig("mlp", 16, 1),
    learning_rate=1e-2,
)
ON = replace(OFF, bonus_scale=1.0, bonus_rebuild=REBUILD, bonus_rows=ROWS, bonus_regularisation=1.0)
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
    seen = as_networks_see(ON, updated.obs_moments, updated.reward_moments, batch)
    representation, critic = state.representation.params, state.critic.params
    phi = jax.vmap(lambda x, a: critic.phi(representation.p(representation.encode(x), a)))(seen.x_h, seen.a_h)
    np.testing.assert_allclose(updated.optimism.rows[:ROWS], phi[:ROWS], rtol=1e-4, atol=1e-5)
    assert not updated.optimism.rows[ROWS:].any()


def test_sigma_is_rebuilt_from_them_when_due_and_only_then(states):
    whiteners = [np.asarray(state.optimism.ellipsoid.whitener) for state, _ in states]
    for before_due in whiteners[1:REBUILD]:
        np.testing.assert_array_equal(before_due, whiteners[0])
    due = states[REBUILD][0].optimism
    expected = Ellipsoid(16, 1.0).rebuilt(due.rows, jnp.float32(1000), ON.bonus_memory)
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
def test_the_backup_is_of_rewards_with_the_bonus_or_without_the_penalty(use, sign, form):
    rng = np.random.default_rng(0)
    rows, phi = rng.normal(size=(40, 16)), rng.normal(size=(8, 16)).astype(np.float32)
    norm = np.sqrt(np.sum(phi * np.linalg.solve(rows.T @ rows + np.eye(16), phi.T).T, axis=1))
    b = np.minimum(1.5 * (norm if form == "norm" else norm**2), 2.0)
    bonus = Bonus(replace(ON, bonus_use=use, bonus_form=form, bonus_scale=1.5, gamma=0.5, n_step=3))
    targets = jnp.arange(8.0)
    raised = bonus.on(optimism_over(rows), targets, jnp.asarray(phi))
    np.testing.assert_allclose(raised, targets + sign * (1 + 0.5 + 0.25) * b, rtol=1e-4)


def test_without_a_state_targets_stay():
    targets = jnp.arange(8.0)
    assert Bonus(OFF).on(None, targets, jnp.ones((8, 16))) is targets


def test_a_half_life_halves_the_bonus_as_data_comes_in():
    optimism, phi = optimism_over(np.eye(16)), jnp.eye(16)
    constant, halving = (
        Bonus(replace(ON, bonus_half_life=h)).of(optimism, phi) for h in (None, 8.0)
    )  # 16 rows are two half-lives
    np.testing.assert_allclose(halving, constant / 4, rtol=1e-5)


def test_no_gradient_passes_through_the_bonus():
    optimism = optimism_over(np.eye(16))
    gradient = jax.grad(lambda phi: jnp.sum(Bonus(ON).on(optimism, jnp.zeros(8), phi)))(jnp.ones((8, 16)))
    assert not gradient.any()


def test_rewards_alone_have_a_value_of_their_own(states):
    """With discount 0 the return is 1: so much are rewards worth; the critic believes in b̂ on top of it."""
    batch = random_batches(AGENT, 1)
    batch = batch._replace(
        reward=np.ones_like(batch.reward),
        discount=np.zeros_like(batch.discount),
        data_size=np.full_like(batch.data_size, 4.0),  # little data, so that b̂ is large
    )
    state = states[0][0]
    for round_ in range(100):  # of the length that is compiled already
        state, metrics, finite = run(AGENT, state, batch, first=round_)
        assert finite
    assert metrics["train/value_of_rewards"] == pytest.approx(1.0, abs=0.1)
    bonus = (1 + ON.gamma) * float(metrics["train/bonus_mean"])
    assert bonus > 0.3
    assert metrics["train/q_mean"] == pytest.approx(1.0 + bonus, abs=0.2)


def test_who_does_not_explore_asks_what_rewards_alone_are_worth():
    agent = MuLV(ON, replace(SPEC, discrete=True))
    state, memory, o_h = initial(agent, KEY), agent.init_memory(), jnp.array([0.5, -1.0, 2.0])

    @jax.jit
    def chosen(w, w_alone):
        """The greedy action where each critic's heads are one."""
        alone = state.optimism.rewards_alone._replace(params=jnp.stack([w_alone, w_alone], axis=1))
        critic = state.critic._replace(params=state.critic.params.with_w(jnp.stack([w, w], axis=1)))
        changed = state._replace(critic=critic, optimism=state.optimism._replace(rewards_alone=alone))
        return jnp.argmax(agent.act(changed, memory, o_h, KEY, deterministic=True)[0])

    w = state.critic.params.w[:, 0]
    assert chosen(w, w) == chosen(-w, w)
    assert chosen(w, w) != chosen(w, -w)  # the other critic's order of the two actions


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"bonus_scale": -1.0}, "bonus_scale is -1.0"),
        ({"bonus_rows": 9}, "bonus_rows is 9; it must be at most batch_size, 8"),
        ({"bonus_memory": 1.5}, "bonus_memory is 1.5"),
        ({"bonus_half_life": 0.0}, "bonus_half_life is 0.0"),
        ({"bonus_regularisation": 0.0}, "bonus_regularisation is 0.0"),
        ({"critic": "deep"}, "--critic closed_form"),
    ],
)
def test_a_bonus_that_cannot_be_is_named(changes, line):
    with pytest.raises(MulvError, match=line):
        replace(ON, **changes)
