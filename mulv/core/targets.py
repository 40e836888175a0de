"""Targets for values: n-step and λ-returns, and returns as distributions over bins.

All functions are for one example; the caller's vmap adds the batch. None stops gradients: if a result is the
target of a loss, the caller must.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.stats import norm
from jaxtyping import Array, Float

from mulv.core.errors import MulvError


def n_step_return(
    rewards: Float[Array, "steps"], discounts: Float[Array, "steps"], bootstrap: Float[Array, ""]
) -> Float[Array, ""]:
    """The n-step return of a_h: r_h + d_h (r_{h+1} + d_{h+1} (… (r_{h+n-1} + d_{h+n-1} V(o_{h+n})))).

    `rewards[i]` is r_{h+i}, which follows a_{h+i} and precedes o_{h+i+1}. `discounts[i]` is γ, or 0 where the
    episode terminated at o_{h+i+1}: nothing after it counts. `bootstrap` is V(o_{h+n}).
    """
    weights = jnp.concatenate([jnp.ones(1), jnp.cumprod(discounts)])
    return jnp.sum(weights[:-1] * rewards) + weights[-1] * bootstrap


def lambda_returns(
    rewards: Float[Array, "time"],
    discounts: Float[Array, "time"],
    values: Float[Array, "time"],
    lambda_: float | Float[Array, "time"],
) -> Float[Array, "time"]:
    """TD(λ) returns: position i is G_{h+i} = r_{h+i} + d_{h+i} ((1 − λ) V(o_{h+i+1}) + λ G_{h+i+1}).

    All arguments at position i are of the step from o_{h+i} to o_{h+i+1}: `rewards[i]` is r_{h+i}, which
    follows a_{h+i}; `discounts[i]` is γ, or 0 if the episode terminated at o_{h+i+1}; `values[i]` is
    V(o_{h+i+1}), NOT V(o_{h+i}). After the last position G is V of the last observation. So the result at i
    is a target for V(o_{h+i}).

    For imagined states s_0 … s_T: take reward, discount and value at s_1 … s_T; the result is for
    s_0 … s_{T-1}. For a `SequenceBatch`, whose rows hold the reward before the observation: take rows 1 … T;
    the result is for rows 0 … T−1, and is meaningless for a row that is followed by a `first`.

    `lambda_` is one number, or one per position: 0 at position i if the episode was truncated at o_{h+i+1},
    so that the return bootstraps there.
    """

    def step(
        later: Float[Array, ""], at: tuple[Float[Array, ""], ...]
    ) -> tuple[Float[Array, ""], Float[Array, ""]]:
        reward, discount, value, share = at
        now = reward + discount * ((1 - share) * value + share * later)
        return now, now

    shares = jnp.broadcast_to(jnp.asarray(lambda_, values.dtype), values.shape)
    return jax.lax.scan(step, values[-1], (rewards, discounts, values, shares), reverse=True)[1]


def symlog(x: Float[Array, "*any"]) -> Float[Array, "*any"]:
    """sign(x) log(1 + |x|): the identity near zero, a logarithm far from it."""
    # Not with sign and absolute value, for which JAX's gradient at 0 is 0 instead of 1.
    return jnp.log1p(jnp.maximum(x, 0.0)) - jnp.log1p(jnp.maximum(-x, 0.0))


def symexp(x: Float[Array, "*any"]) -> Float[Array, "*any"]:
    """sign(x) (exp|x| − 1), the inverse of `symlog`."""
    return jnp.expm1(jnp.maximum(x, 0.0)) - jnp.expm1(jnp.maximum(-x, 0.0))


class Bins(eqx.Module):
    """The support of a categorical distribution over returns or rewards.

    `number` values evenly spaced from `low` to `high`, both included. With `symlog_spaced` the symlogs of the
    values are evenly spaced: dense near zero, with a wide range.
    """

    low: float = eqx.field(static=True)
    high: float = eqx.field(static=True)
    number: int = eqx.field(static=True)
    symlog_spaced: bool = eqx.field(static=True, default=False)

    def __check_init__(self) -> None:
        if self.number < 2 or not self.low < self.high:
            raise MulvError(f"{self.number} bins from {self.low} to {self.high}: give two or more, low first")

    @property
    def centres(self) -> Float[Array, "bins"]:
        """The values themselves, in increasing order, in the units of returns."""
        # In float64, and computed from both ends, so that values are exactly symmetric if high is −low.
        up = np.arange(self.number)
        even = (self.low * up[::-1] + self.high * up) / (self.number - 1)
        return jnp.float32(np.sign(even) * np.expm1(np.abs(even)) if self.symlog_spaced else even)

    def mean(self, probabilities: Float[Array, "bins"]) -> Float[Array, ""]:
        """The expected value; a network's logits need a softmax first."""
        terms = probabilities * self.centres
        # Added in pairs from both ends: in symmetric distributions, as at initialisation, large terms cancel
        # before rounding.
        return 0.5 * jnp.sum(terms + terms[::-1])

    def two_hot(self, x: Float[Array, ""]) -> Float[Array, "bins"]:
        """Probabilities of the two values next to x whose mean is x; beyond an end, all on that end."""
        centres = self.centres
        x = jnp.clip(x, centres[0], centres[-1])
        below = jnp.clip(jnp.sum(centres <= x) - 1, 0, self.number - 2)
        share = (x - centres[below]) / (centres[below + 1] - centres[below])
        lower, upper = jax.nn.one_hot(jnp.stack([below, below + 1]), self.number)
        return (1 - share) * lower + share * upper

    def hl_gauss(self, x: Float[Array, ""], sigma: float = 0.75) -> Float[Array, "bins"]:
        """A Gaussian at x as probabilities (Farebrother et al. 2024): its mass in the bin around each value.

        `sigma` is its standard deviation in bin widths. With `symlog_spaced` it is a Gaussian of the symlog,
        whose mean is not exactly x. An x beyond an end is clipped. Mass more than half a bin beyond an end is
        dropped and the rest scaled to 1, which moves the mean inwards near the ends.
        """
        even = symlog(x) if self.symlog_spaced else x
        width = (self.high - self.low) / (self.number - 1)
        position = jnp.clip((even - self.low) / width, 0.0, self.number - 1.0)
        edges = jnp.arange(self.number + 1) - 0.5
        mass = jnp.diff(norm.cdf((edges - position) / sigma))
        return mass / jnp.sum(mass)


def cross_entropy(logits: Float[Array, "bins"], target: Float[Array, "bins"]) -> Float[Array, ""]:
    """−Σ target · log softmax(logits)."""
    return -jnp.sum(target * jax.nn.log_softmax(logits))


def project_distribution(
    bins: Bins, probabilities: Float[Array, "bins"], reward: Float[Array, ""], discount: Float[Array, ""]
) -> Float[Array, "bins"]:
    """The distribution of reward + discount · G on the bins, for G with these probabilities (C51).

    The probability of each moved value is split between the two nearest bins, so the mean is kept, up to
    clipping at the ends. `discount` is 0 if the episode terminated; `reward` may be that of n steps.
    """
    moved = reward + discount * bins.centres
    return probabilities @ jax.vmap(bins.two_hot)(moved)
