"""How long a sweep will take, roughly, before anything has run."""

from collections import defaultdict

from mulv.bench.suite import Job
from mulv.envs import resolve

# Updates a second of one run on one core, with vector observations; a decision costs little beside one.
UPDATE_RATE: defaultdict[str, float] = defaultdict(lambda: 45.0, {"mulv": 45.0, "sac": 100.0})
EVALUATION_RATE = 4000.0  # decisions a second while evaluating, where ten environments share one
# The same where frames are drawn, with networks of a size that a CPU manages.
FRAMES_UPDATE_RATE: defaultdict[str, float] = defaultdict(lambda: 8.0, {"mulv": 20.0})
FRAMES_EVALUATION_RATE = 60.0
START_SECONDS = 10.0  # imports and compilation


def steps_a_second(job: Job) -> float:
    """Steps of a run on one core, as the run counts them: of the simulator, and updates on data alone."""
    sees = resolve(job.config.task, job.config.keep).pixels
    rates = FRAMES_UPDATE_RATE if sees else UPDATE_RATE
    return rates[job.config.algo] * job.config.repeat / max(job.config.replay_ratio, 0.1)


def seconds(job: Job) -> float:
    """Seconds of one core."""
    config, task = job.config, resolve(job.config.task, job.config.keep)
    evaluations = -(-job.steps // config.eval_every) if config.eval_every else 0
    decisions = evaluations * config.eval_episodes * (task.horizon or 1000) / config.repeat
    evaluating = decisions / (FRAMES_EVALUATION_RATE if task.pixels else EVALUATION_RATE)
    return START_SECONDS + job.steps / steps_a_second(job) + evaluating
