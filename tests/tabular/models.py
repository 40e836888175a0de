"""Small POMDPs whose structure is known by construction."""

from itertools import product

import numpy as np

from mulv.tabular.pomdp import POMDP


def generic(seed: int, states: int = 3, actions: int = 2, observations: int = 3) -> POMDP:
    """Everything drawn at random: no window ever decodes it, and observations tell states apart a little."""
    rng = np.random.default_rng(seed)
    emission = rng.dirichlet(np.ones(observations), size=states)
    return POMDP(
        transition=tuple(rng.dirichlet(np.ones(states), size=states) for _ in range(actions)),
        observation=(emission,) * actions,
        initial_observation=emission,
        reward=rng.uniform(size=(actions, states)),
        start=rng.dirichlet(np.ones(states)),
        discount=1.0,
    )


def of_order(order: int, seed: int, observations: int = 2, actions: int = 2) -> POMDP:
    """The next observation depends on the last `order` of them: windows of that length decode it, to a state.

    States are the sequences of the last observations, shorter ones at the start of an episode.
    """
    rng = np.random.default_rng(seed)
    states = [s for n in range(1, order + 1) for s in product(range(observations), repeat=n)]
    place = {s: i for i, s in enumerate(states)}
    transition = np.zeros((actions, len(states), len(states)))
    for (i, s), a in product(enumerate(states), range(actions)):
        for o, p in enumerate(rng.dirichlet(np.ones(observations))):
            transition[a, i, place[(*s, o)[-order:]]] += p
    emission = np.eye(observations)[[s[-1] for s in states]]
    start = np.zeros(len(states))
    start[:observations] = rng.dirichlet(np.ones(observations))
    return POMDP(
        transition=tuple(transition),
        observation=(emission,) * actions,
        initial_observation=emission,
        reward=rng.uniform(size=(actions, len(states))),
        start=start,
        discount=1.0,
    )


def with_fresh_bit(pomdp: POMDP, seed: int) -> POMDP:
    """Each state gains a bit, drawn anew at every step and never seen, on which the next step depends.

    Windows decode it as before, to beliefs that are not Dirac.
    """
    rng = np.random.default_rng(seed)
    states, actions = pomdp.states, pomdp.actions
    bit = rng.dirichlet(np.ones(2), size=states)  # of the state it comes with
    transition = np.zeros((actions, states, 2, states, 2))
    for a, old in product(range(actions), range(2)):
        moved = pomdp.transition[(a + old) % actions].toarray()
        transition[a, :, old] = moved[:, :, None] * bit
    emissions = (np.repeat(o.toarray(), 2, axis=0) for o in pomdp.observation)
    first = pomdp.initial_observation
    assert first is not None
    return POMDP(
        transition=tuple(transition.reshape(actions, 2 * states, 2 * states)),
        observation=tuple(emissions),
        initial_observation=np.repeat(first.toarray(), 2, axis=0),
        reward=rng.uniform(size=(actions, 2 * states)),
        start=(pomdp.start[:, None] * bit).reshape(-1),
        discount=1.0,
    )


def delayed_bit(delay: int) -> POMDP:
    """A bit is shown at step 0 and again every `delay` steps; in between nothing is seen. γ = 0."""
    states = list(product(range(2), range(delay)))
    transition = np.zeros((1, 2 * delay, 2 * delay))
    emission = np.zeros((2 * delay, 3))
    for i, (bit, clock) in enumerate(states):
        transition[0, i, states.index((bit, (clock + 1) % delay))] = 1
        emission[i, 2 if clock else bit] = 1
    start = np.zeros(2 * delay)
    start[[states.index((0, 0)), states.index((1, 0))]] = 0.5
    reward = np.array([[float(bit and not clock) for bit, clock in states]])
    return POMDP((transition[0],), (emission,), reward, start, 1.0, emission)


def noisy_cause(seed: int, values: int = 2, observations: int = 3, actions: int = 2) -> POMDP:
    """A hidden cause is drawn given the last observation and action, and what is seen is a noisy sign of it.

    States are (observation, cause). Windows of two decode it, to beliefs that are not Dirac and that depend
    on the older of the two observations.
    """
    rng = np.random.default_rng(seed)
    cause = rng.dirichlet(np.ones(values), size=(actions, observations))
    sign = rng.dirichlet(np.ones(observations), size=values)
    moved = np.einsum("aov,vp->aopv", cause, sign).reshape(actions, observations, -1)
    emission = np.repeat(np.eye(observations), values, axis=0)
    return POMDP(
        transition=tuple(np.repeat(moved, values, axis=1)),
        observation=(emission,) * actions,
        initial_observation=emission,
        reward=rng.uniform(size=(actions, observations * values)),
        start=rng.dirichlet(np.ones(observations * values)),
        discount=0.9,
    )


def tempting_trap() -> POMDP:
    """Every action but one pays a little more, and is the last that pays anything.

    A bit is shown at even steps and hidden at odd ones, after which a new one is drawn: windows of two decode
    it. The action that equals the bit pays 0.5 and goes on; the other pays 0.6 and leads into a trap.
    """
    trap = 4  # after (shown, bit) and (hidden, bit)
    transition = np.zeros((2, 5, 5))
    transition[:, trap, trap] = 1
    for a, bit in product(range(2), range(2)):
        if a == bit:
            transition[a, bit, 2 + bit] = 1
            transition[a, 2 + bit, :2] = 0.5
        else:
            transition[a, [bit, 2 + bit], trap] = 1
    emission = np.eye(4)[[0, 1, 2, 2, 3]]
    pays = [[0.5 if bit == a else 0.6 for bit in (0, 1, 0, 1)] + [0.0] for a in range(2)]
    start = np.array([0.5, 0.5, 0, 0, 0])
    return POMDP(tuple(transition), (emission,) * 2, np.array(pays), start, 1.0, emission)
