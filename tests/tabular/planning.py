"""References for planning: a POMDP that ends, and every plan there is."""

import itertools

import numpy as np

from mulv.tabular.pomdp import POMDP


def that_ends(pomdp: POMDP, horizon: int) -> POMDP:
    """The same for so many decisions and then nothing: a state is (step, state), or the end.

    Its discounted value without a horizon is exactly the other's value over `horizon` decisions.
    """
    states = pomdp.states
    end = horizon * states

    def moved(a: int) -> np.ndarray:
        kernel = np.zeros((end + 1, end + 1))
        for h in range(horizon - 1):
            here, there = slice(h * states, (h + 1) * states), slice((h + 1) * states, (h + 2) * states)
            kernel[here, there] = pomdp.transition[a].toarray()
        kernel[(horizon - 1) * states :, end] = 1
        return kernel

    def seen(matrix) -> np.ndarray:
        return np.concatenate([*[matrix.toarray()] * horizon, np.eye(1, pomdp.observations)])

    first = pomdp.initial_observation
    return POMDP(
        transition=tuple(moved(a) for a in range(pomdp.actions)),
        observation=tuple(seen(o) for o in pomdp.observation),
        reward=np.concatenate([*[pomdp.reward] * horizon, np.zeros((pomdp.actions, 1))], axis=1),
        start=np.concatenate([pomdp.start, np.zeros(end + 1 - states)]),
        discount=pomdp.discount,
        initial_observation=None if first is None else seen(first),
    )


def best_plan(pomdp: POMDP, horizon: int) -> float:
    """The value of the best of all plans, each an action for every sequence of observations, one by one."""
    T, O = pomdp.dense()  # noqa: E741
    observations = range(pomdp.observations)
    if pomdp.initial_observation is None:
        firsts = {(): pomdp.start}
    else:
        likelihood = pomdp.initial_observation.toarray()
        firsts = {(o,): pomdp.start * likelihood[:, o] for o in observations}
    histories = [
        (*first, *rest)
        for first in firsts
        for h in range(horizon)
        for rest in itertools.product(observations, repeat=h)
    ]

    def value(plan: dict, history: tuple, weights: np.ndarray, left: int) -> float:
        if left == 0:
            return 0.0
        a = plan[history]
        after = [value(plan, (*history, o), (weights @ T[a]) * O[a][:, o], left - 1) for o in observations]
        return float(weights @ pomdp.reward[a]) + pomdp.discount * sum(after)

    choices = itertools.product(range(pomdp.actions), repeat=len(histories))
    plans = (dict(zip(histories, actions, strict=True)) for actions in choices)
    return max(sum(value(plan, first, w, horizon) for first, w in firsts.items()) for plan in plans)
