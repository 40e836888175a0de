"""What an update costs: µLV-Rep with its closed-form critic, the published architecture, and SAC-MLP.

All in one process on random batches of HalfCheetah-P's shapes, turn by turn, because machines are noisy; each
figure is the median over turns of a ratio within a turn. First with all cores, then in another process with
one, as each run of a sweep has it: two threads gain little on matrices of 256, and much on the published
architecture's.
"""

import json
import math
import os
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from tqdm import trange

from mulv.agents.base import AbstractAgent
from mulv.agents.mulv.agent import MuLV
from mulv.agents.mulv.config import PRESETS
from mulv.agents.mulv.groups import BonusConfig
from mulv.agents.sac import SAC, SACConfig
from mulv.core.options import with_options
from mulv.core.spec import EnvSpec
from mulv.core.types import Batch, Future, Window
from mulv.run import compiled

REBUILD = BonusConfig().rebuild
SPEC, ROUND = EnvSpec((8,), 6), 8  # HalfCheetah-P; updates in one compiled call, as in training


def random_batches(agent: AbstractAgent, rounds: int) -> Batch:
    """Batches such as the replay gives, filled with noise."""
    rng, spec = np.random.default_rng(0), agent.batch_spec
    lead = (rounds, spec.batch_size)

    def normal(*shape: int) -> np.ndarray:
        return rng.normal(size=lead + shape).astype(np.float32)

    def window() -> Window:
        actions = np.tanh(normal(spec.window - 1, SPEC.act_dim))
        mask = np.ones((*lead, spec.window), bool)
        return Window(normal(spec.window, SPEC.obs_dim), actions, mask, normal(spec.window))

    steps = spec.future
    actions = np.tanh(normal(steps, SPEC.act_dim))
    some, none = np.ones((*lead, steps), bool), np.zeros((*lead, steps), bool)
    future = Future(actions, normal(steps), normal(steps, SPEC.obs_dim), some, none)
    discount = np.full(lead, spec.gamma**spec.n_step, np.float32)
    size = np.full(lead, 10_000, np.float32)
    return Batch(window(), actions[..., 0, :], normal(), discount, window(), future, size)


class Timed:
    """An agent in the middle of learning."""

    def __init__(self, agent: AbstractAgent):
        self.agent, self.batches = agent, random_batches(agent, ROUND)
        self.key = jax.random.key(0, impl="rbg")
        self.state = compiled.init(agent, self.key)
        self.seconds(1)  # compile

    def seconds(self, rounds: int) -> float:
        """Seconds an update."""
        start = time.perf_counter()
        for _ in range(rounds):
            self.state, _, finite = compiled.update(
                self.agent, self.state, self.batches, self.key, np.int32(0)
            )
        jax.block_until_ready(finite)
        return (time.perf_counter() - start) / (rounds * ROUND)

    def matmul_flops(self) -> float:
        """Multiply-adds of the matrix products in one update as compiled, times two."""
        arguments = (self.agent, self.state, self.batches, self.key, np.int32(0))
        text = compiled.update.lower(*arguments).compile().as_text()
        return sum(_flops_of_products(text))


def _flops_of_products(text: str) -> Iterator[float]:
    """Of each product in a compiled program; the loop over updates is there once, and so is one update."""
    shapes = {name: _numbers(shape) for name, shape in re.findall(r"(%\S+) = f32\[([\d,]*)\]", text)}
    product = r"= f32\[([\d,]*)\]\S* dot\((%[^,]+), .*?lhs_contracting_dims=\{([\d,]*)\}"
    for shape, left, contracted in re.findall(product, text):
        depth = math.prod(shapes[left][i] for i in _numbers(contracted))
        yield 2.0 * depth * math.prod(_numbers(shape))


def _numbers(text: str) -> list[int]:
    return [int(number) for number in text.split(",") if number]


def matmul_rate(size: int) -> float:
    """Multiply-adds a second, times two, of square matrix products in a chain."""
    matrix = jnp.asarray(np.random.default_rng(0).normal(size=(size, size)) / size**0.5, jnp.float32)
    length = max(4, int(2e9 / (2 * size**3)))
    chain = jax.jit(lambda a: jax.lax.fori_loop(0, length, lambda _, x: x @ a, a))
    chain(matrix).block_until_ready()
    best = np.inf
    for _ in range(3):
        start = time.perf_counter()
        chain(matrix).block_until_ready()
        best = min(best, time.perf_counter() - start)
    return float(2 * size**3 * length / best)


def act_p99_ms(agent: AbstractAgent, calls: int = 3000) -> float:
    """One observation in, one action out, as the training loop asks for it."""
    key = jax.random.key(0, impl="rbg")
    state, carry = compiled.init(agent, key), compiled.init_carry(agent, 1)
    rng, first, times = np.random.default_rng(0), np.zeros(1, bool), []
    for step in range(calls + 100):
        obs = rng.normal(size=(1, SPEC.obs_dim)).astype(np.float32)
        start = time.perf_counter()
        carry = compiled.act(agent, state, carry, obs, first, key, np.int32(step), deterministic=False)
        np.asarray(carry.action)
        times.append(time.perf_counter() - start)
    return float(np.quantile(times[100:], 0.99) * 1e3)


def measure(turns: int) -> dict[str, Any]:
    """`figures` with all cores, and with one."""
    shown = figures(turns)
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cores)})  # what is started inherits it
    alone = subprocess.run([sys.executable, __file__, str(turns)], check=True, stdout=subprocess.PIPE)
    os.sched_setaffinity(0, cores)
    return shown | {"one_core": json.loads(alone.stdout.splitlines()[-1])}


def figures(turns: int) -> dict[str, Any]:
    """Ratios of update times, the share of the machine's matmul rate, and the time to act.

    `mulv` has the first defaults, which these ratios were first taken with; `default` today's.
    """
    early = PRESETS["early"]
    sized = with_options(early, {"latent.dim": 256})
    published = with_options(
        replace(sized, n_step=1),
        {
            "critic": "deep",
            "critic.samples": 20,
            "elbo.updates": 4,
            "critic.trains_representation": False,
            "elbo.posterior": "learned",
            "latent.twins": False,
            "latent.covariance": "diagonal",
            "elbo.future": 1,
        },
    )
    sac = SACConfig(window=early.window, n_step=early.n_step, trunk=early.trunk)
    agents = {
        "mulv": Timed(MuLV(early, SPEC)),
        "default": Timed(MuLV(PRESETS["default"], SPEC)),
        "mulv, latent 256": Timed(MuLV(sized, SPEC)),
        "mulv, latent 256, l = 1": Timed(MuLV(with_options(sized, {"elbo.future": 1}), SPEC)),
        "published": Timed(MuLV(published, SPEC)),
        "sac": Timed(SAC(sac, SPEC)),
        "mulv, bonus": Timed(MuLV(with_options(early, {"bonus.scale": 1.0}), SPEC)),
    }
    seconds: dict[str, list[float]] = {name: [] for name in agents}
    rates = []
    for _ in trange(turns, desc="µLV-Rep, turns"):
        rates.append(max(matmul_rate(size) for size in (256, 512, 1024)))
        for name, timed in agents.items():
            # A multiple of the updates between two rebuilds of Σ, so that each turn has its share of them.
            seconds[name].append(timed.seconds(1 if name == "published" else REBUILD // ROUND))

    def ratio(slow: str, fast: str) -> float:
        pairs = zip(seconds[slow], seconds[fast], strict=True)
        return round(statistics.median(s / f for s, f in pairs), 2)

    # Of the bonus's program none are told: a rebuild of Σ is in it, and not in every update.
    flops = {name: timed.matmul_flops() for name, timed in agents.items() if name != "mulv, bonus"}
    shares = [flops["mulv"] / s / rate for s, rate in zip(seconds["mulv"], rates, strict=True)]
    return {
        "mulv_over_published": ratio("published", "mulv, latent 256"),
        "mulv_over_published_at_its_l": ratio("published", "mulv, latent 256, l = 1"),
        "mulv_cost_over_sac": ratio("mulv", "sac"),
        "default_over_early": ratio("mulv", "default"),
        "bonus_overhead": round(ratio("mulv, bonus", "mulv") - 1, 2),
        "matmul_share": round(statistics.median(shares), 3),
        "act_p99_ms": round(act_p99_ms(agents["mulv"].agent), 3),
        "updates_per_s": {name: round(1 / statistics.median(s), 1) for name, s in seconds.items()},
        "matmul_gflops": {
            "machine": round(statistics.median(rates) / 1e9, 1),
            **{f"{name}, an update": round(number / 1e9, 3) for name, number in flops.items()},
        },
    }


if __name__ == "__main__":
    print(json.dumps(figures(int(sys.argv[1]))))
