"""What the deep µLV-Rep earns on POMDPs whose optimal value is known, beside the solver's bounds.

The agent learns with the POMDP's own discount; its value is the mean discounted return from the first
decision, over episodes of 100, greedily, with a 95 % interval. Prints one JSON object as its last line, and
writes what it says of a problem to results/theory/deep-PROBLEM.json.
"""

import argparse
import json
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from keeping import RESULTS, keep
from tqdm import tqdm

import mulv
from mulv.api import Learner
from mulv.nets.trunk import TrunkConfig
from mulv.run import compiled, seeding
from mulv.tabular.solver.search import Search
from mulv.tabular.zoo import make

TRUNK = TrunkConfig("layernorm", 64, 1, "elu")
# Small networks, as for the lock. Rewards are of any size, and an episode is worth what its first steps are.
OPTIONS = {
    "preset": "early",
    "trunk": TRUNK,
    "latent.dim": 32,
    "critic.family": "fourier",
    "critic.features": 128,
    "batch_size": 256,
    "learning_rate": 3e-4,
    "elbo.future": 1,
    "n_step": 1,
    "tau": 0.01,
    "replay_ratio": 0.5,  # such steps are cheap, and rewards so noisy that data helps more than updates
    "scale_rewards": True,
    "discrete_policy": "greedy",
    "learning_starts": 500,
    "update_every": 10,
    "eval_every": 0,
}


@dataclass(frozen=True)
class Problem:
    """A POMDP, how long it is learned, and with how much of a past."""

    env: str
    steps: int
    options: dict[str, Any] = field(default_factory=dict)


PROBLEMS = {
    "tiger": Problem("mulv/Tiger-v0", 100_000, {"window": 6}),
    "rocksample-4-4": Problem("mulv/RockSample-4-4-v0", 50_000, {"window": 16}),
}


def bounds(name: str) -> dict[str, float]:
    """The optimal value, from below and from above."""
    search = Search(make(name))
    lower, upper = search.bounds()
    while upper - lower > 1e-3:
        search.trial(1e-3)
        lower, upper = search.bounds()
    return {"lower": lower, "upper": upper}


def value(agent: Learner, gamma: float, episodes: int) -> dict[str, float]:
    """The mean discounted return, of all episodes side by side."""
    envs = [agent._make() for _ in range(episodes)]
    obs = np.stack([env.reset(seed=10_000 + i)[0] for i, env in enumerate(envs)])
    carry = compiled.init_carry(agent.agent, episodes)
    first, going, returns = np.ones(episodes, bool), np.ones(episodes, bool), np.zeros(episodes)
    key, decision = seeding.key(0, seeding.Stream.ACT), 0
    while going.any():
        carry = compiled.act(
            agent.agent, agent.state, carry, obs, first, key, np.int32(decision), deterministic=True
        )
        chosen = np.asarray(carry.action).argmax(axis=-1)
        for i in np.flatnonzero(going):
            obs[i], reward, terminated, truncated, _ = envs[i].step(chosen[i])
            returns[i] += gamma**decision * reward
            going[i] = not (terminated or truncated)
        first[:], decision = False, decision + 1
    return {"mean": float(returns.mean()), "half_interval": float(1.96 * returns.std() / episodes**0.5)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--problems", nargs="*", default=list(PROBLEMS))
    parser.add_argument("--seeds", type=int, nargs="*", default=[0, 1, 2])
    parser.add_argument("--episodes", type=int, default=1000)
    parser.add_argument("--keep", action=argparse.BooleanOptionalAction, default=True)
    arguments = parser.parse_args()
    found: dict[str, Any] = {}
    for name in arguments.problems:
        problem, gamma = PROBLEMS[name], make(name).discount
        options = {**OPTIONS, **problem.options}
        recorded = {"steps": problem.steps, "gamma": gamma, "options": {**options, "trunk": asdict(TRUNK)}}
        found[name] = bounds(name) | recorded
        for seed in tqdm(arguments.seeds, desc=name):
            agent = mulv.MuLV(problem.env, seed=seed, gamma=gamma, **options)
            agent.learn(problem.steps)
            found[name][f"seed {seed}"] = value(agent, gamma, arguments.episodes)
            tqdm.write(f"{name} seed {seed}: {found[name][f'seed {seed}']}")
        if arguments.keep:
            keep(f"deep-{name}", found[name], RESULTS / "theory")
    print(json.dumps(found))


if __name__ == "__main__":
    main()
