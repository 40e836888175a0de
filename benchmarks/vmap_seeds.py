"""What `--vmap-seeds` gains on a CPU: stacked updates of several seeds against as many separate ones.

    python benchmarks/vmap_seeds.py                       SAC-MLP and µLV-Rep, 2 and 4 seeds
    python benchmarks/vmap_seeds.py sac --turns 1         only to see that it works

On one core, as a process of a sweep is, on random batches of HalfCheetah-P's shapes with default options.
Measured turn by turn; each figure is the median over turns of a ratio within a turn. Time is the CPU time of
the process, so that the machine may be busy with other things. Writes results/speed/vmap_seeds.json and
prints the figures as one JSON object, its last line.
"""

import argparse
import json
import os
import statistics
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from keeping import keep
from tqdm import tqdm
from updates import ROUND, SPEC, random_batches

from mulv.agents import algorithm, preset
from mulv.run import compiled, seeding
from mulv.run.runtime import use_compilation_cache
from mulv.run.seeding import Stream

SEEDS, ALGOS = (2, 4), ("sac", "mulv")


@partial(jax.jit, donate_argnums=0)
def stack_and_take_apart(states: tuple[compiled.Packed, ...]) -> tuple[compiled.Packed, ...]:
    """What of `update_vmapped` is no update."""
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *states)
    # Without the barrier XLA sees that nothing happens.
    stacked = jax.lax.optimization_barrier(stacked)
    return tuple(jax.tree.map(lambda leaf, n=n: leaf[n], stacked) for n in range(len(states)))


class Seeds:
    """Several seeds of an agent in the middle of learning."""

    def __init__(self, algo: str, number: int):
        self.agent = algorithm(algo).agent(preset(algo, "default"), SPEC)
        self.states = tuple(
            compiled.init(self.agent, seeding.key(seed, Stream.INIT)) for seed in range(number)
        )
        self.keys = tuple(seeding.key(seed, Stream.UPDATE) for seed in range(number))
        self.batches = (random_batches(self.agent, ROUND),) * number
        for way in (self.separately, self.together, self.copy):
            way()  # compile

    def separately(self) -> None:
        each = zip(self.states, self.batches, self.keys, strict=True)
        learned = [compiled.update(self.agent, s, b, k, np.int32(0)) for s, b, k in each]
        self.states = jax.block_until_ready(tuple(state for state, _, _ in learned))

    def together(self) -> None:
        learned = compiled.update_vmapped(self.agent, self.states, self.batches, self.keys, np.int32(0))
        self.states = jax.block_until_ready(tuple(state for state, _, _ in learned))

    def copy(self) -> None:
        self.states = jax.block_until_ready(stack_and_take_apart(self.states))


def cpu_seconds(way: Callable[[], None], times: int) -> float:
    start = time.process_time()
    for _ in range(times):
        way()
    return (time.process_time() - start) / times


def measure(algo: str, number: int, turns: int) -> dict[str, float]:
    """Separate over stacked, and how much of a stacked round goes into stacking."""
    seeds = Seeds(algo, number)
    gains, copies, updates = [], [], []
    for _ in tqdm(range(turns), desc=f"{algo}, {number} seeds"):
        separate, stacked, copy = (
            cpu_seconds(way, times)
            for way, times in ((seeds.separately, 2), (seeds.together, 2), (seeds.copy, 10))
        )
        gains.append(separate / stacked)
        copies.append(copy / stacked)
        updates.append(1e3 * separate / (number * ROUND))
    return {
        "separate_over_stacked": round(statistics.median(gains), 2),
        "least": round(min(gains), 2),
        "most": round(max(gains), 2),
        "stacking_share": round(statistics.median(copies), 4),
        "separate_update_ms": round(statistics.median(updates), 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("algos", nargs="*", metavar="{sac,mulv}", help="default: both")
    parser.add_argument("--turns", type=int, default=7, help="times each thing is measured")
    options = parser.parse_args()
    if unknown := set(options.algos) - set(ALGOS):
        parser.error(f"nothing is called {unknown.pop()!r}; there are: {' '.join(ALGOS)}")
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    use_compilation_cache()
    figures: dict[str, Any] = {
        f"{algo}_{number}_seeds": measure(algo, number, options.turns)
        for algo in options.algos or ALGOS
        for number in SEEDS
    }
    figures |= {"turns": options.turns, "cores": 1, "time": "CPU time of the process"}
    print(json.dumps(keep("vmap_seeds", figures)))


if __name__ == "__main__":
    main()
