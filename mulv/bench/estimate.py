"""How long a sweep will take, roughly, before anything has run."""

from collections import defaultdict

from mulv.bench.suite import Job
from mulv.envs import TASKS

# Environment steps a second of one run on one core, with vector observations and one update a step.
ESTIMATED_RATE: defaultdict[str, float] = defaultdict(lambda: 45.0, {"mulv": 45.0, "sac": 100.0})
EVALUATION_RATE = 4000.0  # steps a second while evaluating, where ten environments share an action
START_SECONDS = 10.0  # imports and compilation


def seconds(job: Job) -> float:
    """Seconds of one core."""
    config = job.config
    horizon = TASKS[config.task].horizon if config.task in TASKS else 1000
    evaluations = -(-job.steps // config.eval_every) if config.eval_every else 0
    evaluating = evaluations * config.eval_episodes * horizon / EVALUATION_RATE
    return START_SECONDS + job.steps / ESTIMATED_RATE[config.algo] + evaluating
