"""The latent variable model p(z | x, a), p(o' | z) with an enumerable z, fitted by EM.

EM is coordinate ascent on the ELBO (eq. elbo, l = 1): the E-step makes the bound tight with
q(z | x, a, o') ∝ p(z | x, a) p(o' | z), the M-step maximises it over both factors. For counts n(x, a, o')

    p(z | x, a) ← Σ_o' n q / Σ_o' n,        p(o' | z) ← Σ_{x,a} n q / Σ_{x,a,o'} n q.

Data say nothing about p(· | x, a) of a pair that is not in them. Such pairs have a latent of their own, the
last one, which emits what the step shows on average: their features are orthogonal to all that was seen.
"""

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

SOFT = 1e-2  # how much EM's first guess leaves to what it does not favour; an exact zero would stay one


class LatentModel(eqx.Module):
    """Both factors, a step."""

    prior: Float[Array, "time window act latent"]  # p(z | x_h, a_h), the paper's φ(x_h, a_h)
    emission: Float[Array, "time latent obs"]  # p(o_{h+1} | z)

    def probability(self) -> Float[Array, "time window act obs"]:
        """P(o_{h+1} | x_h, a_h)."""
        return jnp.einsum("hxaz,hzo->hxao", self.prior, self.emission)


class Factors(eqx.Module):
    """Both factors of one step, for its pairs (x, a)."""

    prior: Float[Array, "pair latent"]
    emission: Float[Array, "latent obs"]


def fit(
    counts: Float[Array, "time window act obs"],
    possible: Bool[Array, "time obs"],
    *,
    latents: int,
    steps: int,
) -> LatentModel:
    """The model of every step by itself, after so many EM steps; the last latent is that of unseen pairs."""
    pairs = counts.reshape(counts.shape[0], -1, counts.shape[3])
    factors = jax.vmap(functools.partial(_fit_step, latents=latents, steps=steps))(pairs, possible)
    return LatentModel(factors.prior.reshape(*counts.shape[:3], latents + 1), factors.emission)


def _fit_step(
    counts: Float[Array, "pair obs"], possible: Bool[Array, "obs"], *, latents: int, steps: int
) -> Factors:
    """One step's factors."""
    factors = jax.lax.fori_loop(
        0, steps, lambda _, f: em_step(f, counts), first_guess(counts, possible, latents)
    )
    unseen = (jnp.sum(counts, axis=1, keepdims=True) == 0).astype(counts.dtype)
    shown = jnp.sum(counts, axis=0)
    average = _normalised(jnp.where(jnp.sum(shown) > 0, shown, possible.astype(counts.dtype)))
    return Factors(
        jnp.concatenate([factors.prior * (1 - unseen), unseen], axis=1),
        jnp.concatenate([factors.emission, average[None]]),
    )


def em_step(factors: Factors, counts: Float[Array, "pair obs"]) -> Factors:
    """One E-step and one M-step; factors of which the counts say nothing stay as they are."""
    predicted = factors.prior @ factors.emission
    ratio = counts / jnp.where(
        counts > 0, predicted, 1.0
    )  # n / p(o' | x, a), so that n q = p(z) p(o'|z) ratio
    prior = factors.prior * (ratio @ factors.emission.T)
    emission = factors.emission * (factors.prior.T @ ratio)
    return Factors(_normalised(prior, factors.prior), _normalised(emission, factors.emission))


def log_likelihood(factors: Factors, counts: Float[Array, "pair obs"]) -> Float[Array, ""]:
    """Σ n(x, a, o') log p(o' | x, a)."""
    predicted = factors.prior @ factors.emission
    return jnp.sum(counts * jnp.log(jnp.where(counts > 0, predicted, 1.0)))


def first_guess(counts: Float[Array, "pair obs"], possible: Bool[Array, "obs"], latents: int) -> Factors:
    """Latents begin as the pairs that show the most different things; those with much data count for more."""
    total = jnp.sum(counts, axis=1)
    frequency = _normalised(counts)
    weight = jnp.sqrt(total)

    def choose(distance: Array, _: None) -> tuple[Array, Array]:
        chosen = frequency[jnp.argmax(distance * weight)]
        return jnp.minimum(distance, jnp.sum(jnp.abs(frequency - chosen[None]), axis=1)), chosen

    # The first is the pair with most data: every distance is still that of two things that share nothing.
    _, anchors = jax.lax.scan(choose, jnp.full(total.shape, 2.0, counts.dtype), length=latents)
    spread = _normalised(possible.astype(counts.dtype))
    emission = (1 - SOFT) * anchors + SOFT * spread[None]
    return Factors(_normalised(frequency @ emission.T + SOFT), _normalised(emission))


def _normalised(
    weights: Float[Array, "*rows n"], otherwise: Float[Array, "*rows n"] | None = None
) -> Float[Array, "*rows n"]:
    """Each row over its sum; a row of zeros as in `otherwise`, or left alone."""
    total = jnp.sum(weights, axis=-1, keepdims=True)
    return jnp.where(
        total > 0, weights / jnp.where(total > 0, total, 1.0), 0.0 if otherwise is None else otherwise
    )
