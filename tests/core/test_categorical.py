"""Grouped categorical latents against single ones, against sampling, and their gradients."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mulv.core.categorical import Categorical, GroupedCategorical

KEY = jax.random.key(0)
GROUPS, CLASSES = 4, 5


def grouped(seed: int = 0, spread: float = 1.5) -> GroupedCategorical:
    rng = np.random.default_rng(seed)
    return GroupedCategorical(jnp.float32(spread * rng.normal(size=(GROUPS, CLASSES))))


def samples(p: GroupedCategorical, number: int) -> np.ndarray:
    return np.asarray(jax.vmap(p.sample)(jax.random.gumbel(KEY, (number, GROUPS, CLASSES))))


def test_a_sample_is_exactly_one_hot_in_every_group():
    z = samples(grouped(), 1000)
    assert set(np.unique(z)) == {0.0, 1.0}
    np.testing.assert_array_equal(z.sum(axis=-1), 1.0)


def test_samples_have_the_probabilities_and_groups_are_independent():
    p, z = grouped(), samples(grouped(), 40_000)
    np.testing.assert_allclose(z.mean(axis=0), p.mean, atol=0.012)
    together = np.einsum("ni,nj->ij", z[:, 0], z[:, 1]) / len(z)
    np.testing.assert_allclose(together, np.outer(p.mean[0], p.mean[1]), atol=0.012)


def test_each_group_is_a_categorical_of_its_own():
    p, q, noise = grouped(0), grouped(1), jax.random.gumbel(KEY, (GROUPS, CLASSES))
    for i in range(GROUPS):
        mine, theirs = Categorical(p.logits[i]), Categorical(q.logits[i])
        np.testing.assert_allclose(p.mean[i], mine.mean, rtol=1e-6)
        np.testing.assert_allclose(p.sample(noise)[i], mine.sample(noise[i]), atol=1e-6)
        np.testing.assert_allclose(p.kl(q)[i], jnp.sum(mine.kl(theirs)), rtol=1e-5)


def test_the_divergence_is_what_sampling_converges_to():
    p, q, z = grouped(0), grouped(1), samples(grouped(0), 100_000)
    ratio = np.asarray(jax.nn.log_softmax(p.logits) - jax.nn.log_softmax(q.logits))
    terms = np.sum(z * ratio, axis=-1)
    error = 4 * terms.std(axis=0) / len(z) ** 0.5
    assert (np.abs(terms.mean(axis=0) - np.asarray(p.kl(q))) < error).all()
    other_way = np.abs(terms.mean(axis=0) - np.asarray(q.kl(p)))
    assert (other_way > error).any()  # KL(q ‖ p) is told from it
    np.testing.assert_allclose(p.kl(p), 0.0, atol=1e-6)


def test_a_sample_has_the_gradient_of_the_probabilities():
    p, noise = grouped(), jax.random.gumbel(KEY, (GROUPS, CLASSES))
    got = jax.jacobian(lambda logits: GroupedCategorical(logits).sample(noise))(p.logits)
    np.testing.assert_allclose(got, jax.jacobian(jax.nn.softmax)(p.logits), atol=1e-6)
    assert np.abs(got).max() > 0.01


def test_the_mode_is_the_likeliest_class_without_a_gradient():
    p = grouped()
    np.testing.assert_array_equal(p.mode(), np.eye(CLASSES)[np.argmax(p.logits, axis=-1)])
    assert not np.any(jax.jacobian(lambda logits: GroupedCategorical(logits).mode())(p.logits))


def test_entropy_is_that_of_the_probabilities_and_greatest_for_the_uniform():
    p = np.asarray(grouped().mean, np.float64)
    np.testing.assert_allclose(grouped().entropy(), -np.sum(p * np.log(p), axis=-1), rtol=1e-5)
    flat = GroupedCategorical(jnp.zeros((GROUPS, CLASSES)))
    np.testing.assert_allclose(flat.entropy(), np.log(CLASSES), rtol=1e-6)
    to_flat = np.log(CLASSES) - np.asarray(grouped().entropy())
    np.testing.assert_allclose(grouped().kl(flat), to_flat, rtol=1e-4)


@pytest.mark.parametrize("share", [0.0, 0.01, 0.5])
def test_unimix_mixes_the_uniform_in(share):
    p = grouped()
    expected = (1 - share) * np.asarray(p.mean) + share / CLASSES
    np.testing.assert_allclose(p.unimix(share).mean, expected, rtol=1e-5)


def test_with_a_share_of_uniform_certainty_has_a_finite_divergence_and_gradient():
    sure = jnp.array([[200.0, 0.0, 0.0]])
    other = GroupedCategorical(jnp.array([[0.0, 200.0, 0.0]]))

    def divergence(logits):
        return jnp.sum(GroupedCategorical(logits).unimix(0.01).kl(other.unimix(0.01)))

    assert float(divergence(sure)) < np.log(3 / 0.01)
    assert np.isfinite(jax.grad(divergence)(sure)).all()
    assert float(jnp.sum(GroupedCategorical(sure).kl(other))) > 100


def test_a_batch_is_each_by_itself():
    logits = jnp.stack([grouped(seed).logits for seed in range(3)])
    noise = jax.random.gumbel(KEY, logits.shape)
    many = jax.vmap(lambda one, n: GroupedCategorical(one).sample(n))(logits, noise)
    for i in range(3):
        np.testing.assert_array_equal(many[i], GroupedCategorical(logits[i]).sample(noise[i]))
