"""How long a sweep will take, roughly, before anything has run."""

from collections import defaultdict

from mulv.bench.suite import Job
from mulv.envs import resolve

# Environment steps a second of one run on one core, with vector observations and one update a step.
ESTIMATED_RATE: defaultdict[str, float] = defaultdict(lambda: 45.0, {"mulv": 45.0, "sac": 100.0})
EVALUATION_RATE = 4000.0  # steps a second while evaluating, where ten environments share an action
# The same where frames are drawn, with networks of a size that a CPU manages.
FRAMES_RATE: defaultdict[str, float] = defaultdict(lambda: 15.0, {"mulv": 30.0})
FRAMES_EVALUATION_RATE = 120.0
START_SECONDS = 10.0  # imports and compilation


def seconds(job: Job) -> float:
    """Seconds of one core."""
    config, task = job.config, resolve(job.config.task, job.config.keep)
    rates, evaluation_rate = ESTIMATED_RATE, EVALUATION_RATE
    if task.pixels:
        rates, evaluation_rate = FRAMES_RATE, FRAMES_EVALUATION_RATE
    evaluations = -(-job.steps // config.eval_every) if config.eval_every else 0
    evaluating = evaluations * config.eval_episodes * (task.horizon or 1000) / evaluation_rate
    return START_SECONDS + job.steps / rates[config.algo] + evaluating
