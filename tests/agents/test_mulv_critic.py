"""The critic is linear and exact, least squares agree however they are solved, the maximum is the maximum."""

from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mulv.agents.mulv.agent import Model, MuLV
from mulv.agents.mulv.config import MuLVConfig
from mulv.agents.mulv.critic import LinearCritic, least_squares
from mulv.agents.mulv.normalisation import normalise_batch
from mulv.agents.mulv.policy import believed
from mulv.core.gaussian import DiagonalNormal
from mulv.core.options import with_options
from mulv.core.spec import EnvSpec
from mulv.nets.trunk import TrunkConfig
from tests.agents.support import assert_the_return_is_found, initial, leaves, random_batches, run, same

SPEC, KEY = EnvSpec((3,), 2), jax.random.key(0)
SMALL = with_options(
    MuLVConfig(window=2, n_step=1, batch_size=8, trunk=TrunkConfig("mlp", 16, 2), learning_rate=1e-2),
    {"latent.dim": 4, "critic.features": 32},
)


def latents() -> tuple[DiagonalNormal, ...]:
    rng = np.random.default_rng(0)
    return tuple(
        DiagonalNormal(jnp.float32(rng.normal(size=4)), jnp.float32(rng.uniform(0.3, 1.5, 4)))
        for _ in range(2)
    )


def expected_value(critic: LinearCritic, samples: int = 200_000) -> np.ndarray:
    """E_{z~p}[w(z)] by sampling, where w(z) is the value at a certain z."""
    noise = jax.random.normal(jax.random.key(5), (samples, 2, 4))

    def at(noise):
        z = [p.sample(n) for p, n in zip(latents(), noise, strict=True)]
        return critic.values(critic.phi(tuple(DiagonalNormal(z_i, jnp.zeros(4)) for z_i in z)))

    return np.asarray(jnp.mean(jax.vmap(at)(noise), axis=0))


def values_of_heads(critic: LinearCritic, phi: np.ndarray) -> np.ndarray:
    """⟨φ, w⟩, written out: a head reads all of φ, or of twins' features its own."""
    w, parts = np.asarray(critic.w), np.split(np.asarray(phi), len(critic.embeddings), axis=1)
    return np.stack([parts[i % len(parts)] @ w[:, i] for i in range(2)], axis=1)


@pytest.mark.parametrize("family", ["fourier", "relu", "erf"])
def test_q_is_the_expectation_of_w_over_the_latent(family):
    critic = LinearCritic(with_options(SMALL, {"critic.family": family}), key=KEY)
    np.testing.assert_allclose(critic.values(critic.phi(latents())), expected_value(critic), atol=0.02)


def test_a_network_of_z_has_the_expectation_of_its_values():
    """However nonlinear w is, Q is linear in p(z | x, a)."""
    critic = LinearCritic(with_options(SMALL, {"critic": "network", "critic.samples": 20_000}), key=KEY)
    single = with_options(SMALL, {"critic": "network"})
    w = eqx.tree_at(lambda c: [e.noise for e in c.embeddings], critic, [jnp.zeros((1, 4))] * 2)
    np.testing.assert_allclose(critic.values(critic.phi(latents())), expected_value(w), atol=0.02)
    # One sample is the mean of z, whose value is not the expectation.
    at_mean = LinearCritic(single, key=KEY)
    assert at_mean.embeddings[0].noise is None
    of_one = eqx.tree_at(lambda c: [e.trunk for e in c.embeddings], w, [e.trunk for e in at_mean.embeddings])
    of_one = eqx.tree_at(lambda c: c.weights, of_one, at_mean.weights)
    np.testing.assert_allclose(
        at_mean.values(at_mean.phi(latents())), of_one.values(of_one.phi(latents())), rtol=1e-5
    )
    assert np.abs(w.values(w.phi(latents())) - expected_value(w)).max() > 0.05


def test_samples_of_a_network_are_mirrored():
    (noise, _) = (
        e.noise
        for e in LinearCritic(
            with_options(SMALL, {"critic": "network", "critic.samples": 5}), key=KEY
        ).embeddings
    )
    assert noise.shape == (5, 4)
    np.testing.assert_allclose(jnp.sum(noise, axis=0), 0, atol=1e-6)


DISTRIBUTION = {"critic": "distribution", "critic.bins": 41, "critic.low": -5.0, "critic.high": 5.0}


def test_a_distribution_of_returns_is_linear_in_the_latents_and_q_is_its_mean():
    critic = LinearCritic(with_options(SMALL, DISTRIBUTION | {"critic.samples": 20_000}), key=KEY)
    phi = np.split(np.asarray(critic.phi(latents())), 2)
    for part in phi:
        assert (part >= 0).all()
        assert part.sum() == pytest.approx(1, abs=1e-4)
    centres = np.linspace(-5, 5, 41)
    np.testing.assert_allclose(critic.values(jnp.concatenate(phi)), [p @ centres for p in phi], atol=1e-4)
    single = eqx.tree_at(lambda c: [e.hidden.noise for e in c.embeddings], critic, [jnp.zeros((1, 4))] * 2)
    np.testing.assert_allclose(critic.values(critic.phi(latents())), expected_value(single), atol=0.02)


def test_the_bins_of_a_distribution_stay_where_they_are():
    agent = MuLV(with_options(SMALL, DISTRIBUTION), SPEC)
    before = initial(agent, KEY)
    after, _, finite = run(agent, before, random_batches(agent, 5))
    assert finite
    np.testing.assert_array_equal(after.critic.params.weights, before.critic.params.weights)
    assert not same(after.critic.params.embeddings, before.critic.params.embeddings)


@pytest.mark.parametrize(("kind", "expected"), [("lower", [1.0, -3.0]), ("mean", [2.0, 0.0])])
def test_what_is_believed_of_two_critics(kind, expected):
    values = jnp.array([[1.0, 3.0], [3.0, -3.0]])
    np.testing.assert_allclose(believed(replace(SMALL, double_q=kind), values), expected)


def test_the_deep_critic_is_not_an_expectation_over_the_latent():
    critic = LinearCritic(with_options(SMALL, {"critic": "deep", "critic.samples": 400}), key=KEY)
    error = np.abs(critic.values(critic.phi(latents())) - expected_value(critic, 4_000))
    assert error.max() > 0.03


def test_sampling_the_latent_converges_to_the_closed_form():
    exact = LinearCritic(SMALL, key=KEY)

    def error(samples: int) -> float:
        sampled = LinearCritic(
            with_options(SMALL, {"critic": "monte_carlo", "critic.samples": samples}), key=jax.random.key(1)
        )
        psi = [embed.psi for embed in exact.embeddings]
        sampled = eqx.tree_at(lambda c: [embed.psi for embed in c.embeddings], sampled, psi)
        return float(jnp.sqrt(jnp.mean(jnp.square(sampled.phi(latents()) - exact.phi(latents())))))

    assert error(100_000) < 0.01 * float(jnp.linalg.norm(exact.phi(latents()))) + 1e-3
    assert error(100_000) < 0.2 * error(100)


@pytest.mark.parametrize("twins", [True, False])
@pytest.mark.parametrize("latent_kind", ["gaussian", "categorical"])
def test_q_is_linear_in_phi(latent_kind, twins):
    config = with_options(SMALL, {"latent": latent_kind, "latent.twins": twins})
    state = initial(MuLV(config, SPEC), KEY)
    batch = jax.tree.map(lambda leaf: jnp.asarray(leaf[0]), random_batches(MuLV(config, SPEC), 1))
    representation, critic = state.representation.params, state.critic.params
    phi = jax.vmap(lambda x, a: critic.phi(representation.p(representation.encode(x), a)))(
        batch.x_h, batch.a_h
    )
    q = Model(representation, critic).q_at(batch.x_h)(batch.a_h)
    np.testing.assert_allclose(q, values_of_heads(critic, phi), rtol=1e-5, atol=1e-6)
    doubled = Model(representation, critic.with_w(2 * critic.w)).q_at(batch.x_h)(batch.a_h)
    np.testing.assert_allclose(doubled, 2 * q, rtol=1e-5, atol=1e-6)


def test_a_finite_latent_is_enumerated():
    config = with_options(SMALL, {"latent": "categorical", "latent.dim": 5})
    state = initial(MuLV(config, SPEC), KEY)
    batch = jax.tree.map(lambda leaf: jnp.asarray(leaf[0]), random_batches(MuLV(config, SPEC), 1))
    representation = state.representation.params
    p = jax.vmap(lambda x, a: representation.p(representation.encode(x), a))(batch.x_h, batch.a_h)
    phi = jax.vmap(state.critic.params.phi)(p)
    for part, p_i in zip(jnp.split(phi, 2, axis=1), p, strict=True):
        np.testing.assert_allclose(jnp.sum(part, axis=-1), 1, rtol=1e-5)
        np.testing.assert_allclose(part, jax.nn.softmax(p_i.logits), rtol=1e-5)


def test_twins_differ_and_one_latent_has_heads_that_read_the_same():
    batch = jax.tree.map(lambda leaf: jnp.asarray(leaf[0]), random_batches(MuLV(SMALL, SPEC), 1))
    for twins in (True, False):
        state = initial(MuLV(with_options(SMALL, {"latent.twins": twins}), SPEC), KEY)
        representation, critic = state.representation.params, state.critic.params
        critic = critic.with_w(jnp.repeat(critic.w[:, :1], 2, axis=1))
        q = Model(representation, critic).q_at(batch.x_h)(batch.a_h)
        assert bool(jnp.allclose(q[:, 0], q[:, 1])) is not twins


def regression(seed: int = 0):
    rng = np.random.default_rng(seed)
    phi = rng.normal(size=(200, 12)) @ np.diag(np.linspace(0.5, 1.5, 12))
    targets = phi @ rng.normal(size=12) + 0.1 * rng.normal(size=200)
    return jnp.float32(phi), jnp.float32(targets)


def test_least_squares_is_the_textbooks():
    phi, targets = regression()
    wanted = np.linalg.lstsq(np.asarray(phi, np.float64), np.asarray(targets, np.float64))[0]
    np.testing.assert_allclose(least_squares(phi, targets, 1e-9), wanted, atol=1e-3)
    assert np.abs(least_squares(phi, targets, 1.0) - wanted).max() > 0.1


def fitted(ridge: float | None, updates: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The agent's own updates where the critic's representation stands still: φ, its values, the returns."""
    config = with_options(
        replace(SMALL, batch_size=128, tau=1e-7),
        {
            "critic.ridge": ridge,
            "critic.family": "fourier",
            "critic.features": 8,
            "critic.trains_representation": False,
            "critic.train_frequencies": False,
            "critic.lengthscale": 0.3,
        },
    )
    agent = MuLV(config, SPEC)
    batch = random_batches(agent, 1)
    batch = batch._replace(discount=np.zeros_like(batch.discount))  # terminal: the target is the return
    repeated = jax.tree.map(lambda leaf: np.repeat(leaf, updates, axis=0), batch)
    state, _, finite = run(agent, initial(agent, KEY), repeated)
    assert finite
    representation, critic = model = Model(state.target_representation, state.critic.params)
    one = jax.tree.map(lambda leaf: jnp.asarray(leaf[0]), batch)
    data = normalise_batch(config, state.obs_moments, state.reward_moments, one)
    phi = jax.vmap(lambda x, a: critic.phi(representation.p(representation.encode(x), a)))(data.x_h, data.a_h)
    return np.asarray(phi), np.asarray(model.q_at(data.x_h)(data.a_h)), np.asarray(data.reward)


def test_gradient_steps_find_the_least_squares_critic():
    phi, values, returns = fitted(None, 4000)
    for head, part in enumerate(np.split(phi, 2, axis=1)):
        wanted = part @ np.asarray(least_squares(jnp.asarray(part), jnp.asarray(returns), 1e-6))
        np.testing.assert_allclose(values[:, head], wanted, atol=0.05 * returns.std())


def test_the_ridge_solve_finds_each_heads_least_squares_critic_at_once():
    phi, values, returns = fitted(1e-6, 1)
    for head, (part, half) in enumerate(
        zip(np.split(phi, 2, axis=1), (slice(0, 64), slice(64, 128)), strict=True)
    ):
        wanted = part @ np.linalg.lstsq(part[half].astype(np.float64), returns[half].astype(np.float64))[0]
        np.testing.assert_allclose(values[:, head], wanted, atol=0.05 * returns.std())


def trained_on(config: MuLVConfig, reward: float):
    agent = MuLV(config, SPEC)
    batch = random_batches(agent, 1)
    batch = batch._replace(reward=np.full_like(batch.reward, reward))
    return run(agent, initial(agent, KEY), batch)[0]


@pytest.mark.parametrize("trains", [True, False])
def test_the_critics_gradient_reaches_the_representation_only_when_asked(trains):
    config = with_options(SMALL, {"critic.trains_representation": trains})
    one, other = (trained_on(config, reward).representation.params.latents for reward in (0.0, 50.0))
    assert same(one, other) is not trains


@pytest.mark.parametrize("trained", [True, False])
@pytest.mark.parametrize("critic", ["closed_form", "monte_carlo"])
def test_frequencies_stay_as_drawn_unless_trained(trained, critic):
    config = with_options(SMALL, {"critic.train_frequencies": trained, "critic": critic})
    before = initial(MuLV(config, SPEC), KEY).critic.params.embeddings[0].psi
    after = trained_on(config, 1.0).critic.params.embeddings[0].psi
    assert same(before, after) is not trained


def test_further_updates_move_the_representation_and_not_the_critic():
    def after(updates: int):
        agent = MuLV(
            with_options(SMALL, {"elbo.updates": updates, "critic.trains_representation": False}), SPEC
        )
        assert agent.batch_spec.batch_size == 8 * updates
        batch = random_batches(MuLV(replace(SMALL, batch_size=24), SPEC), 1)
        # Without whitening's statistics both see the same first part.
        agent = replace(agent, config=replace(agent.config, normalise_observations=False))
        batch = batch._replace(future=batch.future._replace(rewards=np.ones_like(batch.future.rewards)))
        part = jax.tree.map(lambda leaf: leaf[:, : 8 * updates], batch)
        return run(agent, initial(agent, KEY), part)[0]

    once, thrice = after(1), after(3)
    assert not same(once.representation.params, thrice.representation.params)
    assert same(once.critic.params, thrice.critic.params)


@pytest.mark.parametrize(
    "changes",
    [
        {"critic": "monte_carlo"},
        {"critic": "deep", "critic.trains_representation": False, "elbo.updates": 2},
        {"critic.family": "relu"},
        {"critic": "network", "critic.samples": 2, "double_q": "mean"},
        DISTRIBUTION,
        {"critic.family": "erf", "elbo.future": 3},
        {"latent": "categorical", "elbo.future": 2},
        {"critic.ridge": 1e-3},
        {"elbo.posterior": "learned", "elbo.kl_balance": 0.8, "elbo.free_nats": 1.0},
    ],
)
def test_every_variant_finds_the_return_of_terminal_steps(changes):
    assert_the_return_is_found(MuLV(with_options(SMALL, changes), SPEC), rounds=1, updates=400)


def test_the_last_leaf_is_looked_at():
    """`same` must not pass by comparing nothing."""
    assert len(leaves(initial(MuLV(SMALL, SPEC), KEY).representation.params)) > 10
