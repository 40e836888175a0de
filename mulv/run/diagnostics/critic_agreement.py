"""How well a critic's values agree with measured true values."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from mulv.agents.base import AbstractAgent
from mulv.core.errors import MulvError
from mulv.core.types import PyTree
from mulv.run import compiled
from mulv.run.diagnostics.true_values import TrueValues

SAMPLES = 2000  # bootstrap samples
Interval = tuple[float, float]


@dataclass(frozen=True)
class Agreement:
    """Agreement over states and actions, with 95 % bootstrap intervals over states."""

    advantage_correlation: float  # of advantages pooled over states: states with large ones count more
    advantage_correlation_interval: Interval
    state_correlation: float  # correlation over the actions of one state, averaged over states
    state_correlation_interval: Interval
    best_above_mean: float  # share of states where the predicted best action has a positive true advantage
    best_above_mean_interval: Interval
    advantage_scale: float  # standard deviation of predicted advantages over that of true ones
    value_correlation: float  # over states, for the policy's own action
    value_bias: float  # mean of predicted − true, in standard deviations of the true values
    value_rmse: float  # the same unit


def agreement(predicted: np.ndarray, true: np.ndarray, seed: int = 0) -> Agreement:
    """The agreement of two arrays (state, action) of values; the first action is the policy's own."""
    if predicted.shape != true.shape or predicted.ndim != 2:
        raise MulvError(f"values {predicted.shape} and {true.shape} are not of the same states and actions")
    predicted, true = predicted.astype(np.float64), true.astype(np.float64)
    a_hat, a = (values - values.mean(axis=1, keepdims=True) for values in (predicted, true))
    products, squares_hat, squares = (a_hat * a).sum(1), np.square(a_hat).sum(1), np.square(a).sum(1)
    of_state = products / np.sqrt(squares_hat * squares + 1e-30)
    above = a[np.arange(len(a)), a_hat.argmax(axis=1)] > 0
    error, unit = predicted - true, true.std()
    drawn = np.random.default_rng(seed).integers(len(true), size=(SAMPLES, len(true)))

    def pooled(states: Any) -> np.ndarray:
        sums = (part[states].sum(axis=-1) for part in (products, squares_hat, squares))
        product, one, other = sums
        return product / np.sqrt(one * other + 1e-30)

    return Agreement(
        advantage_correlation=float(pooled(slice(None))),
        advantage_correlation_interval=_interval(pooled(drawn)),
        state_correlation=float(of_state.mean()),
        state_correlation_interval=_interval(of_state[drawn].mean(axis=1)),
        best_above_mean=float(above.mean()),
        best_above_mean_interval=_interval(above[drawn].mean(axis=1)),
        advantage_scale=float(np.sqrt(squares_hat.sum() / squares.sum())),
        value_correlation=correlation(predicted[:, 0], true[:, 0]),
        value_bias=float(error.mean() / unit),
        value_rmse=float(np.sqrt(np.square(error).mean()) / unit),
    )


def correlation(one: np.ndarray, other: np.ndarray) -> float:
    """Pearson's correlation; 0 if one of them is constant."""
    one, other = one - one.mean(), other - other.mean()
    return float((one * other).sum() / np.sqrt(np.square(one).sum() * np.square(other).sum() + 1e-30))


@dataclass(frozen=True)
class Ceiling:
    """The correlations that a perfect critic would reach, given the noise of the measured values."""

    advantage_correlation: float
    state_correlation: float


def ceiling(returns: np.ndarray) -> Ceiling | None:
    """The ceiling of returns (state, action, repeat), from the agreement r of two halves of the repeats.

    It is √ of the reliability of the mean over repeats, 2r / (1 + r) (Spearman and Brown). None for a single
    repeat.
    """
    if returns.shape[-1] < 2:
        return None
    halves = agreement(returns[..., ::2].mean(axis=-1), returns[..., 1::2].mean(axis=-1))
    both = (max(r, 0.0) for r in (halves.advantage_correlation, halves.state_correlation))
    return Ceiling(*(float(np.sqrt(2 * r / (1 + r))) for r in both))


def _interval(samples: np.ndarray) -> Interval:
    low, high = np.quantile(samples, [0.025, 0.975])
    return float(low), float(high)


def predicted_values(
    agent: AbstractAgent,
    packed: compiled.Packed,
    truth: TrueValues,
    shown: Callable[[np.ndarray], np.ndarray] = lambda obs: obs,
) -> np.ndarray:
    """Q(x, a) of each critic at the states and actions of `truth`, as an array (state, action, head).

    The agent's memory is built from the episode up to the state. `shown` maps the observations of the policy
    that acted to those that this agent sees.
    """
    episodes, length = truth.obs.shape[:2]
    obs = shown(truth.obs.reshape(episodes * length, -1)).reshape(episodes, length, -1)
    past = (truth.past_actions, truth.past_rewards)
    values = _ask(agent, packed, obs, *past, truth.episode, truth.time, truth.tried)
    if values is None:
        raise MulvError(f"{type(agent).__name__} has no critic that can be asked")
    return np.asarray(values)


@partial(jax.jit, static_argnums=0)
def _ask(
    agent: AbstractAgent,
    packed: compiled.Packed,
    obs: Float[Array, "episode time obs"],
    past_actions: Float[Array, "episode time act"],
    past_rewards: Float[Array, "episode time"],
    episode: Int[Array, "state"],
    time: Int[Array, "state"],
    tried: Float[Array, "state action act"],
) -> Float[Array, "state action head"] | None:
    state, key = compiled.unpack(agent, packed), jax.random.key(0)

    def memories(*rows: Array) -> PyTree:
        def step(memory: PyTree, row: tuple[Array, ...]) -> tuple[PyTree, PyTree]:
            o_h, a_prev, r_prev = row
            memory = agent.observe(state, memory, a_prev, r_prev, o_h, key)
            return memory, memory

        return jax.lax.scan(step, agent.init_memory(), rows)[1]

    at = jax.tree.map(lambda leaf: leaf[episode, time], jax.vmap(memories)(obs, past_actions, past_rewards))
    of_state = jax.vmap(lambda memory, a: agent.q_values(state, memory, a), in_axes=(None, 0))
    return jax.vmap(of_state)(at, jnp.asarray(tried))
