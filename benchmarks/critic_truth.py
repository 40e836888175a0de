"""Critic against the truth: data and policy are fixed; how well does a critic know what actions are worth?

    python benchmarks/critic_truth.py --run RUN --task HalfCheetah-P --algo mulv --window 8

Data and policy are those of a finished run of `mulv train` that still has its replay. Its policy's true
values are measured once and kept in the run's directory. Writes results/critic-truth/<name>.json; see
docs/critic-truth.md.
"""

import hashlib
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

import gymnasium as gym
import numpy as np
import tyro
from keeping import RESULTS, keep
from tqdm import tqdm

from mulv.agents import algorithm, preset
from mulv.api import Learner, load
from mulv.cli.arguments import asks_for_help, choose_kinds, describe_kinds, value_of
from mulv.core.errors import MulvError
from mulv.core.types import Metrics
from mulv.data import Replay
from mulv.envs import env_spec
from mulv.envs.recorded import observations
from mulv.run import compiled, seeding
from mulv.run.config import DEFAULT_ALGO, RunConfig, to_json
from mulv.run.diagnostics.critic_agreement import agreement, ceiling, predicted_values
from mulv.run.diagnostics.policy_evaluation import (
    EvaluationData,
    evaluate_fixed_policy,
    places,
    policy_actions,
)
from mulv.run.diagnostics.true_values import TrueValues, TruthOptions, measure_true_values
from mulv.run.directory import RunDirectory
from mulv.run.offline.dataset import check_same_problem
from mulv.run.seeding import Stream
from mulv.run.train import complete, environment_of

OUT = RESULTS / "critic-truth"


@dataclass(frozen=True)
class Options:
    """Train a critic towards a fixed policy on fixed data, and compare it with the truth."""

    config: Annotated[RunConfig, tyro.conf.arg(name="")]
    run: Path = Path()
    """The run whose policy and replay are taken. A critic of another task sees less than the run did."""
    preset: str = "default"
    """Named values of the agent's options."""
    updates: tuple[int, ...] = (1000, 2000, 4000, 6000)
    """After how many updates the critic is asked."""
    name: str | None = None
    """Of the file of results. Default: algorithm, task, window and seed."""
    truth: TruthOptions = field(default_factory=TruthOptions)
    """How true values are measured."""


def parse(arguments: Sequence[str]) -> Options:
    """Two passes, as `mulv train` does: the algorithm decides which options there are."""
    run = value_of("--run", arguments)
    if run is None and not asks_for_help(arguments):
        raise MulvError("say whose policy and data with --run RUN")
    task = RunDirectory(Path(run)).read_config().task if run is not None else RunConfig().task
    algo = value_of("--algo", arguments) or DEFAULT_ALGO
    agent, left = choose_kinds(preset(algo, value_of("--preset", arguments) or "default"), arguments)
    return tyro.cli(
        Options,
        args=left,
        default=Options(RunConfig(task=task, algo=algo, agent=agent)),
        description=f"{Options.__doc__}\n\n{describe_kinds(agent)}.",
        config=(tyro.conf.AvoidSubcommands,),
    )


def true_values(learner: Learner, run: Path, options: TruthOptions) -> TrueValues:
    """Measured, or read where they were."""
    path = run / f"true-values-{learner.env_steps}.npz"
    if path.exists():
        return TrueValues.load(path, options)
    make = environment_of(learner.config)
    with tqdm(total=options.states, desc="true values", unit="state") as bar:
        truth = measure_true_values(learner.agent, learner.state, make, options, lambda done: bar.update())
    truth.save(path, options)
    return truth


def spread(true: np.ndarray) -> dict[str, float]:
    """How large true advantages are, and the share of their squares that a twentieth of the states has."""
    advantages = true - true.mean(axis=1, keepdims=True)
    squares = np.sort(np.square(advantages).sum(axis=1))[::-1]
    few = max(1, round(len(squares) / 20))
    return {
        "advantage_std": float(advantages.std()),
        "median_state_advantage_std": float(np.median(advantages.std(axis=1))),
        "share_of_top_states": float(squares[:few].sum() / squares.sum()),
    }


def own_critic(learner: Learner, truth: TrueValues, true: np.ndarray) -> dict[str, Any] | None:
    """Agreement of the critic that the policy was trained by; its values may include entropy."""
    memory = learner.agent.init_memory()
    state = compiled.unpack(learner.agent, learner.state)
    if learner.agent.q_values(state, memory, np.zeros(learner.spec.act_dim, np.float32)) is None:
        return None
    return asdict(agreement(predicted_values(learner.agent, learner.state, truth).min(axis=-1), true))


def evaluate(options: Options) -> dict[str, Any]:
    """What is kept of one critic: its options, and its agreement with the truth after so many updates."""
    learner = load(options.run)
    past, config = learner.config, complete(options.config)
    config = replace(config, action_repeat=past.repeat)
    check_same_problem(past.task, past.keep, config, str(options.run))
    truth = true_values(learner, options.run, options.truth)

    env = environment_of(config)()
    agent = algorithm(config.algo).agent(config.agent, env_spec(env))
    whole = gym.spaces.Box(-np.inf, np.inf, learner.spec.obs_shape, np.float32)
    shown = observations(env, whole, str(options.run))
    env.close()

    replay = Replay.open(RunDirectory(options.run).replay, mode="r")
    rows = replay.obs_at(places(replay))
    acted = policy_actions(learner.agent, learner.state, replay)
    data = EvaluationData(replay, shown(rows), acted)

    gamma = agent.batch_spec.gamma
    returns = truth.returns(gamma)
    true, best = returns.mean(axis=-1), ceiling(returns)
    state = compiled.init(agent, seeding.key(config.seed, Stream.INIT))
    marks, found, begin = sorted(options.updates), [], time.perf_counter()

    def report(done: int, packed: compiled.Packed, metrics: Metrics) -> None:
        if not marks or done < marks[0]:
            return
        marks.pop(0)
        heads = predicted_values(agent, packed, truth, shown)
        lower, mean = agreement(heads.min(axis=-1), true), agreement(heads.mean(axis=-1), true)
        loss = float(metrics["train/critic_loss"])
        found.append({"updates": done, "lower": asdict(lower), "mean": asdict(mean), "critic_loss": loss})
        print(
            f"{done:6} updates  advantages {lower.advantage_correlation:.3f}"
            f"  by state {lower.state_correlation:.3f}  best above mean {lower.best_above_mean:.2f}"
            f"  values {lower.value_correlation:.3f}  bias {lower.value_bias:+.2f}"
            f"  RMSE {lower.value_rmse:.2f}",
            flush=True,
        )

    rng, key = seeding.generator(config.seed, Stream.REPLAY), seeding.key(config.seed, Stream.UPDATE)
    evaluate_fixed_policy(agent, state, data, max(options.updates), rng, key, report)
    return {
        "task": config.task,
        "algo": config.algo,
        "seed": config.seed,
        "config": to_json(config.agent),
        "policy": {
            "config": to_json(past),
            "env_steps": learner.env_steps,
            "commit": json.loads((options.run / "config.json").read_text())["commit"],
        },
        "data": {"rows": len(rows), "sha256": hashlib.sha256(rows.tobytes() + acted.tobytes()).hexdigest()},
        "truth": asdict(options.truth)
        | {
            "gamma": gamma,
            "value_mean": float(true[:, 0].mean()),
            "value_std": float(true[:, 0].std()),
            "return_std": float(true.std()),
            **spread(true),
            "ceiling": None if best is None else asdict(best),
        },
        "policy_critic": own_critic(learner, truth, true),
        "figures": found,
        "wall_s": time.perf_counter() - begin,
    }


def main(arguments: Sequence[str]) -> int:
    try:
        options = parse(arguments)
        kept = evaluate(options)
    except MulvError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    window = getattr(options.config.agent, "window", 1)
    name = options.name or f"{kept['algo']}-{kept['task']}-window-{window}-seed-{kept['seed']}"
    keep(name, kept, OUT)
    print(OUT / f"{name}.json")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
