"""`mulv eval`."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import tyro

from mulv.api import load
from mulv.run.runtime import use_compilation_cache


@dataclass(frozen=True)
class EvalOptions:
    """Evaluate a run's newest checkpoint."""

    run: tyro.conf.Positional[Path]
    """The run's directory."""
    episodes: int = 10
    """Episodes."""
    seed: int = 0
    """Seed of the episodes."""
    stochastic: bool = False
    """Sample actions instead of taking the mode."""
    video: Path | None = None
    """A .gif or .mp4 to write the first episode to, where the task shows frames."""


def run(arguments: Sequence[str]) -> int:
    """Print every episode's return and their mean."""
    options = tyro.cli(EvalOptions, args=list(arguments), prog="mulv eval")
    use_compilation_cache()
    learner = load(options.run)
    evaluation = learner.evaluate(
        episodes=options.episodes,
        seed=options.seed,
        deterministic=not options.stochastic,
        video=options.video,
    )
    for number, (ret, length) in enumerate(zip(evaluation.returns, evaluation.lengths, strict=True), 1):
        print(f"episode {number:3d}  return {ret:10.1f}  length {length:5d}")
    print(f"mean {np.mean(evaluation.returns):.1f} ± {np.std(evaluation.returns):.1f}")
    if evaluation.successes is not None:
        print(f"success in {sum(evaluation.successes)} of {len(evaluation.successes)} episodes")
    if options.video is not None:
        print(f"film {options.video}")
    return 0
