"""Small POMDPs to test on, and the plainest way to say what a belief is."""

import itertools

import numpy as np

from mulv.tabular.pomdp import POMDP


def random_pomdp(seed: int, states=3, actions=2, observations=3, *, first=True, zeros=0.0) -> POMDP:
    """A POMDP with random kernels; a share of their entries is zero."""
    rng = np.random.default_rng(seed)

    def kernel(rows: int, columns: int) -> np.ndarray:
        weights = rng.random((rows, columns)) * (rng.random((rows, columns)) >= zeros)
        weights[np.arange(rows), rng.integers(columns, size=rows)] += 0.1  # no row is empty
        return weights / weights.sum(axis=1, keepdims=True)

    return POMDP(
        transition=tuple(kernel(states, states) for _ in range(actions)),
        observation=tuple(kernel(states, observations) for _ in range(actions)),
        reward=rng.normal(size=(actions, states)),
        start=kernel(1, states)[0],
        discount=0.9,
        initial_observation=kernel(states, observations) if first else None,
    )


def belief_by_paths(pomdp: POMDP, obs: list[int | None], actions: list[int]) -> np.ndarray | None:
    """P(s_h | o_0, a_0, …, o_h) by summing over every path of states; None for an impossible history."""
    T, O = pomdp.dense()  # noqa: E741
    weights = np.zeros(pomdp.states)
    for path in itertools.product(range(pomdp.states), repeat=len(obs)):
        p = pomdp.start[path[0]]
        if pomdp.initial_observation is not None:
            p *= pomdp.initial_observation.toarray()[path[0], obs[0]]
        for h, a in enumerate(actions):
            p *= T[a, path[h], path[h + 1]] * O[a, path[h + 1], obs[h + 1]]
        weights[path[-1]] += p
    return weights / weights.sum() if weights.sum() > 0 else None


def equal(one: POMDP, other: POMDP) -> bool:
    """Whether two POMDPs are the same to the last bit."""

    def parts(pomdp: POMDP) -> list:
        first = pomdp.initial_observation
        matrices = [*pomdp.transition, *pomdp.observation, *([] if first is None else [first])]
        arrays = [m.toarray() for m in matrices] + [pomdp.reward, pomdp.start]
        names = (pomdp.state_names, pomdp.action_names, pomdp.observation_names)
        return [(a.shape, a.tolist()) for a in arrays] + [names, pomdp.discount, pomdp.horizon]

    return parts(one) == parts(other)
