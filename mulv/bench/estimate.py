"""A rough estimate of a sweep's duration, before anything has run."""

from collections import defaultdict

from mulv.bench.suite import Job
from mulv.envs import resolve

# Updates per second of one run on one core, with vector observations; a step costs little compared to one.
UPDATE_RATE: defaultdict[str, float] = defaultdict(lambda: 45.0, {"mulv": 45.0, "sac": 100.0})
EVALUATION_RATE = 4000.0  # decisions per second in evaluations, with ten environments in parallel
# The same for frames, with networks small enough for a CPU.
FRAMES_UPDATE_RATE: defaultdict[str, float] = defaultdict(lambda: 8.0, {"mulv": 20.0})
FRAMES_EVALUATION_RATE = 60.0
START_SECONDS = 10.0  # imports and compilation


def steps_a_second(job: Job) -> float:
    """Steps per second of a run on one core, in units of its clock: simulator steps and offline updates."""
    sees = resolve(job.config.task, job.config.keep).pixels
    rates = FRAMES_UPDATE_RATE if sees else UPDATE_RATE
    return rates[job.config.algo] * job.config.repeat / max(job.config.replay_ratio, 0.1)


def seconds(job: Job) -> float:
    """The estimated seconds of a run on one core."""
    config, task = job.config, resolve(job.config.task, job.config.keep)
    evaluations = -(-job.steps // config.eval_every) if config.eval_every else 0
    decisions = evaluations * config.eval_episodes * (task.horizon or 1000) / config.repeat
    evaluating = decisions / (FRAMES_EVALUATION_RATE if task.pixels else EVALUATION_RATE)
    return START_SECONDS + job.steps / steps_a_second(job) + evaluating
