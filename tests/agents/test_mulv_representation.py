"""The ELBO is what the paper says, and its options do what they are called."""

from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mulv.agents.mulv.agent import MuLV
from mulv.agents.mulv.config import MuLVConfig
from mulv.agents.mulv.elbo import batch_elbo_terms, elbo_terms, latent_noise, negative_elbo
from mulv.agents.mulv.inspection import effective_rank
from mulv.agents.mulv.normalisation import normalise_batch
from mulv.agents.mulv.representation import Representation
from mulv.core.categorical import Categorical
from mulv.core.errors import MulvError
from mulv.core.options import with_options
from mulv.core.spec import EnvSpec
from mulv.core.types import Batch, Future, Window
from mulv.nets.trunk import TrunkConfig
from mulv.run import compiled
from tests.agents.support import initial, random_batches

SPEC = EnvSpec((3,), 2)
SMALL = with_options(
    MuLVConfig(window=2, trunk=TrunkConfig("mlp", 16, 2)),
    {
        "latent.dim": 4,
        "critic.features": 16,
        "elbo.future": 3,
        "elbo.posterior": "learned",
        "elbo.kl_weight": 1.0,
    },
)
KEY = jax.random.key(0)


def example(steps: int, seed: int = 0, real: int | None = None):
    rng = np.random.default_rng(seed)
    mask = np.arange(steps) < (steps if real is None else real)

    def normal(*shape: int) -> jax.Array:
        return jnp.asarray(rng.normal(size=shape), jnp.float32)

    x_h = Window(normal(2, 3), normal(1, 2), jnp.ones(2, bool), jnp.zeros(2))
    none = jnp.zeros(steps, bool)
    future = Future(normal(steps, 2), normal(steps), normal(steps, 3), jnp.asarray(mask), none)
    return x_h, future.actions[0], future


def p_of(model, x_h, a_h):
    return model.p(model.encode(x_h), a_h)[0]


def loss(model, config, x_h, a_h, future, noise):
    return negative_elbo(explained(model, config, x_h, a_h, future, noise), config)


def explained(model, config, x_h, a_h, future, noise):
    p = p_of(model, x_h, a_h)
    q = model.latents[0].q(model.encode(x_h), a_h, future, p)
    return elbo_terms(model, p, q, future, noise, config.elbo.kl_balance)


@pytest.mark.parametrize("latent", ["gaussian", "categorical"])
@pytest.mark.parametrize("steps", [1, 2, 5])
def test_l_steps_are_explained_one_after_the_other(latent, steps):
    """Against the sum written out: z, then its transitions under a_{h+1}, a_{h+2}, … and not a_h."""
    config = with_options(SMALL, {"elbo.future": steps, "latent": latent})
    model = Representation(SPEC, config, key=KEY)
    x_h, a_h, future = example(steps)
    noise = latent_noise(config, 1, KEY)[0]
    p = p_of(model, x_h, a_h)
    q = model.latents[0].q(model.encode(x_h), a_h, future, p)
    z, wanted = q.sample(noise), float(jnp.sum(q.kl(p)))
    for i in range(steps):
        if i > 0:
            z = model.transition(z, future.actions[i])
        o, r = model.decoder(z)
        wanted += 0.5 * float(jnp.sum((future.obs[i] - o) ** 2)) + 0.5 * float((future.rewards[i] - r) ** 2)
    assert float(loss(model, config, x_h, a_h, future, noise)) == pytest.approx(wanted, rel=1e-5)


@pytest.mark.parametrize("posterior", ["prior", "learned"])
def test_twins_explain_a_part_of_the_batch_each(posterior):
    config = with_options(SMALL, {"elbo.posterior": posterior})
    model = Representation(SPEC, config, key=KEY)
    examples = [example(3, seed) for seed in range(6)]
    x_h, a_h, future = jax.tree.map(lambda *leaves: jnp.stack(leaves), *examples)
    noise = latent_noise(config, 6, KEY)
    u = jax.vmap(model.encode)(x_h)
    p = jax.vmap(model.p)(u, a_h)
    data = Batch(x_h, a_h, None, None, x_h, future, None)
    terms = batch_elbo_terms(model, u, p, data, noise, None)
    for i, (x, a, f) in enumerate(examples):
        twin = i // 3  # of six windows three each
        p_i = model.p(model.encode(x), a)[twin]
        q_i = model.latents[twin].q(model.encode(x), a, f, p_i)
        alone = elbo_terms(model, p_i, q_i, f, noise[i], None)
        for whole, one in zip(terms, alone, strict=True):
            np.testing.assert_allclose(whole[i], one, rtol=1e-4, atol=1e-5)
    computed_there = batch_elbo_terms(model, u, None, data, noise, None)
    for whole, one in zip(terms, computed_there, strict=True):
        np.testing.assert_allclose(whole, one, rtol=1e-4, atol=1e-5)


def test_one_step_needs_no_transition():
    assert Representation(SPEC, with_options(SMALL, {"elbo.future": 1}), key=KEY).transition is None


def test_steps_after_the_episode_are_not_explained():
    model, noise = Representation(SPEC, SMALL, key=KEY), jnp.zeros(4)
    x_h, a_h, future = example(3, real=2)
    other = future._replace(rewards=future.rewards.at[2].set(9.0), actions=future.actions.at[2].set(9.0))
    one, two = (loss(model, SMALL, x_h, a_h, f, noise) for f in (future, other))
    assert float(one) == float(two)
    seen = future._replace(rewards=future.rewards.at[1].set(9.0))
    assert float(loss(model, SMALL, x_h, a_h, seen, noise)) != float(one)


def evidence(model, x_h, a_h, future):
    """log p(o⁺, r | x, a) = log E_{z~p} p(o⁺, r | z), by 100 000 samples; and the z that explains it best."""
    p = p_of(model, x_h, a_h)

    def log_likelihood(z):
        obs, rewards = model.predict(z, future.actions)
        return -0.5 * (jnp.sum((future.obs - obs) ** 2) + jnp.sum((future.rewards - rewards) ** 2))

    samples = jax.vmap(p.sample)(jax.random.normal(KEY, (100_000, 4)))
    likelihoods = jax.vmap(log_likelihood)(samples)
    return float(jax.nn.logsumexp(likelihoods) - jnp.log(100_000)), samples[jnp.argmax(likelihoods)]


def expected_elbo(model, config, x_h, a_h, future):
    noise = jax.random.normal(jax.random.key(1), (2_000, 4))
    return -float(jnp.mean(jax.vmap(lambda n: loss(model, config, x_h, a_h, future, n))(noise)))


def test_the_elbo_is_a_lower_bound_on_the_likelihood_and_a_lighter_kl_is_not():
    config = with_options(SMALL, {"latent.normalise": False})
    model = Representation(SPEC, config, key=KEY)
    x_h, a_h, future = example(3)
    log_evidence, best = evidence(model, x_h, a_h, future)
    # A posterior that sits, whatever it sees, where this data is likeliest.
    head = model.latents[0].posterior.head
    there = eqx.tree_at(
        lambda m: (m.latents[0].posterior.head.weight, m.latents[0].posterior.head.bias),
        model,
        (jnp.zeros_like(head.weight), jnp.append(best, -20.0)),
    )
    for posterior in (model, there):
        assert expected_elbo(posterior, config, x_h, a_h, future) < log_evidence
    lighter = with_options(config, {"elbo.kl_weight": 0.01})
    assert expected_elbo(there, lighter, x_h, a_h, future) > log_evidence


def test_p_as_its_own_posterior_bounds_the_likelihood_and_tightly_where_z_is_certain():
    config = with_options(SMALL, {"elbo.posterior": "prior"})
    model = Representation(SPEC, config, key=KEY)
    assert model.latents[0].posterior is None
    x_h, a_h, future = example(3)

    def gap(log_std: float) -> float:
        """Evidence over ELBO, with every σ of p moved to one end of its range or the other."""
        bias = jnp.append(jnp.zeros(4), log_std)
        moved = eqx.tree_at(lambda m: m.latents[0].prior.head.bias, model, bias)
        return evidence(moved, x_h, a_h, future)[0] - expected_elbo(moved, config, x_h, a_h, future)

    assert gap(20.0) > 0.1  # wide: what was not foreseen costs
    assert gap(-20.0) == pytest.approx(0.0, abs=0.03)


def gradients(config, seed=0):
    model = Representation(SPEC, config, key=KEY)
    x_h, a_h, future = example(3, seed)

    def of(model):
        terms = explained(model, config, x_h, a_h, future, jnp.ones(4))
        return jnp.maximum(jnp.sum(terms.kl), config.elbo.free_nats)

    value, gradient = jax.value_and_grad(of, allow_int=True)(model)
    size = {
        part: sum(
            float(jnp.sum(jnp.abs(leaf))) for leaf in jax.tree.leaves(getattr(gradient.latents[0], part))
        )
        for part in ("prior", "posterior")
    }
    return float(value), size


def test_kl_balancing_shares_the_gradient_and_leaves_the_value():
    plain_value, plain = gradients(SMALL)
    value, to_prior = gradients(with_options(SMALL, {"elbo.kl_balance": 1.0}))
    assert value == pytest.approx(plain_value)
    assert to_prior["posterior"] == 0
    assert to_prior["prior"] == pytest.approx(plain["prior"], rel=1e-5)
    _, to_posterior = gradients(with_options(SMALL, {"elbo.kl_balance": 0.0}))
    assert to_posterior["prior"] == 0
    assert to_posterior["posterior"] == pytest.approx(plain["posterior"], rel=1e-5)


def test_free_nats_stop_the_pressure_below_them_only():
    value, _ = gradients(SMALL)
    _, freed = gradients(with_options(SMALL, {"elbo.free_nats": value + 1}))
    assert freed == {"prior": 0, "posterior": 0}
    _, pressed = gradients(with_options(SMALL, {"elbo.free_nats": value - 0.01}))
    assert pressed["prior"] > 0


def test_a_normalised_latent_has_unit_variance_and_an_unnormalised_one_has_not():
    x_h, a_h, _ = example(3)
    for normalised in (True, False):
        config = with_options(SMALL, {"latent.normalise": normalised, "latent.dim": 16})
        mean = p_of(Representation(SPEC, config, key=KEY), x_h, a_h).mean
        assert (abs(float(jnp.std(mean)) - 1) < 1e-3) is normalised


@pytest.mark.parametrize(("spread", "numbers"), [("isotropic", 1), ("diagonal", 16)])
def test_a_latent_has_as_many_spreads_as_asked_and_they_depend_on_the_window(spread, numbers):
    representation = Representation(
        SPEC, with_options(SMALL, {"latent.covariance": spread, "latent.dim": 16}), key=KEY
    )
    p, elsewhere = (p_of(representation, *example(3, seed=seed)[:2]) for seed in (0, 1))
    assert (p.mean.shape, p.std.shape) == ((16,), (numbers,))
    assert len(set(np.asarray(p.std).tolist())) == numbers
    assert (np.asarray(p.std) != np.asarray(elsewhere.std)).all()


def test_a_categorical_latent_samples_its_probabilities_and_passes_gradients():
    p = Categorical(jnp.array([0.0, 1.0, -1.0]))
    z = jax.vmap(p.sample)(jax.random.gumbel(KEY, (20_000, 3)))
    np.testing.assert_allclose(jnp.mean(z, axis=0), p.mean, atol=0.015)
    assert set(np.unique(np.round(z, 5))) == {0.0, 1.0}
    np.testing.assert_allclose(p.mean, jax.nn.softmax(p.logits))
    slope = jax.jacobian(lambda logits: Categorical(logits).sample(jnp.zeros(3)))(p.logits)
    np.testing.assert_allclose(slope, jax.jacobian(jax.nn.softmax)(p.logits), atol=1e-6)


def test_a_categorical_divergence_is_the_sum_of_its_terms():
    p, q = Categorical(jnp.array([0.0, 1.0, -1.0])), Categorical(jnp.array([0.5, 0.0, 0.2]))
    a, b = (np.asarray(d.mean, np.float64) for d in (p, q))
    assert float(jnp.sum(p.kl(q))) == pytest.approx(float(np.sum(a * np.log(a / b))), abs=1e-6)
    np.testing.assert_allclose(p.kl(p), 0, atol=1e-7)


@pytest.mark.parametrize(("changes", "levels"), [(True, False), (False, False), (True, True)])
def test_changes_are_what_is_explained_when_asked(changes, levels):
    """Against the definition: each observation, or its step from the one before over the root mean square."""
    options = {"elbo.predict_changes": changes, "elbo.predict_levels": levels}
    agent = MuLV(with_options(replace(SMALL, batch_size=8), options), SPEC)
    batch = jax.tree.map(lambda leaf: jnp.asarray(leaf[0]), random_batches(agent, 1))
    moments = initial(agent, KEY).obs_moments.update(batch.x_h.obs[:, -1], batch.future.obs[:, 0])
    seen = normalise_batch(agent.config, moments, initial(agent, KEY).reward_moments, batch)
    o_h, obs = np.asarray(batch.x_h.obs[:, -1:]), np.asarray(batch.future.obs)
    root = np.sqrt(np.mean((obs[:, 0] - o_h[:, 0]) ** 2, axis=0))
    change = (obs - np.concatenate([o_h, obs[:, :-1]], axis=1)) / root
    level = (obs - o_h[:, 0].mean(axis=0)) / o_h[:, 0].std(axis=0)
    wanted = np.concatenate([change, level], axis=-1) if levels else change if changes else level
    real = np.asarray(batch.future.mask)
    np.testing.assert_allclose(seen.future.obs[real], np.clip(wanted, -10, 10)[real], rtol=1e-3, atol=1e-3)
    assert not np.any(seen.future.obs[~real])


def test_what_is_shown_of_the_kl_is_the_closed_form_of_each_dimension():
    agent = MuLV(with_options(replace(SMALL, batch_size=8), {"latent.covariance": "diagonal"}), SPEC)
    state = initial(agent, KEY)
    batch = jax.tree.map(lambda leaf: jnp.asarray(leaf[0]), random_batches(agent, 1))
    seen = normalise_batch(agent.config, state.obs_moments, state.reward_moments, batch)
    model, wanted = state.representation.params, np.zeros(4)
    for i in range(8):
        x, a, future = jax.tree.map(lambda leaf, i=i: leaf[i], (seen.x_h, seen.a_h, seen.future))
        p = p_of(model, x, a)
        q = model.latents[0].q(model.encode(x), a, future, p)
        ratio = np.square(q.std / p.std)
        wanted += 0.5 * (ratio + np.square((q.mean - p.mean) / p.std) - 1 - np.log(ratio)) / 8
    shown = compiled.inspect(agent, compiled.pack(state), batch, KEY)["representation/kl_per_latent"]
    assert wanted.min() > 1e-3
    np.testing.assert_allclose(shown, wanted, rtol=1e-3)


@pytest.mark.parametrize("rank", [1, 3, 10])
def test_effective_rank_counts_directions(rank):
    rng = np.random.default_rng(0)
    directions = np.linalg.qr(rng.normal(size=(40, rank)))[0].T
    phi = rng.normal(size=(4000, rank)) @ directions + 5.0
    assert float(effective_rank(jnp.asarray(phi, jnp.float32))) == pytest.approx(rank, rel=0.03)


@pytest.mark.parametrize(
    "changes",
    [
        {"latent.dim": 0},
        {"elbo.future": 0},
        {"elbo.kl_weight": -1.0},
        {"elbo.kl_balance": 1.5},
        {"critic.lengthscale": 0.0},
        {"critic": "deep", "critic.ridge": 1e-3},
        {"latent": "categorical", "critic": "monte_carlo"},
        {"recurrence.direct": 9},
        {"recurrence.units": 4, "normalise_observations": False},
    ],
)
def test_a_setting_that_cannot_be_is_named(changes):
    with pytest.raises(MulvError, match="|".join(changes)):
        with_options(SMALL, changes)
