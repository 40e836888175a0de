"""How many belief updates a second: beliefs over 100 states, each with an action and observation of its own.

Prints one JSON object as its last line and writes it to results/speed/belief.json.
"""

import json
import time

import jax
import numpy as np
from keeping import keep
from tqdm import tqdm

from mulv.tabular.belief import BeliefFilter
from mulv.tabular.pomdp import POMDP

STATES, ACTIONS, OBSERVATIONS = 100, 4, 10


def dense_pomdp(rng: np.random.Generator) -> POMDP:
    """Every state leads to every other: nothing is gained by knowing the zeros."""
    return POMDP(
        transition=tuple(rng.dirichlet(np.ones(STATES), size=(ACTIONS, STATES))),
        observation=tuple(rng.dirichlet(np.ones(OBSERVATIONS), size=(ACTIONS, STATES))),
        reward=np.zeros((ACTIONS, STATES)),
        start=np.full(STATES, 1 / STATES),
        discount=0.95,
    )


def updates_per_second(batch: int, repeats: int) -> dict[str, float]:
    rng = np.random.default_rng(0)
    beliefs = BeliefFilter(dense_pomdp(rng))
    b, a = rng.dirichlet(np.ones(STATES), size=batch), rng.integers(ACTIONS, size=batch)
    o = rng.integers(OBSERVATIONS, size=batch)
    b, a, o = map(jax.block_until_ready, (*beliefs.update(b, a, o)[:1], a, o))  # compiled, and on the device
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        b, _ = jax.block_until_ready(beliefs.update(b, a, o))
        times.append(time.perf_counter() - start)
    return {"median": round(batch / np.median(times)), "best": round(batch / min(times))}


def main() -> None:
    figures: dict[str, object] = {"states": STATES, "actions": ACTIONS}
    for batch in tqdm((1_000, 4_000, 16_000), desc="batch sizes"):
        figures[f"updates_per_second_batch_{batch}"] = updates_per_second(batch, repeats=50)
    print(json.dumps(keep("belief", figures)))


if __name__ == "__main__":
    main()
