"""The suites with frames as observations. Data only."""

from mulv.bench.suite import Method, Options, Suite
from mulv.envs import PIXEL_TASKS

_DMC = """
    acrobot-swingup reacher-easy reacher-hard finger-turn_easy manipulation-reach_duplo quadruped-walk
    quadruped-run cartpole-swingup_sparse hopper-hop cheetah-run walker-run
"""
DMC_PIXELS = tuple(f"{name}-px" for name in _DMC.split())
METAWORLD = tuple(task.name for task in PIXEL_TASKS.values() if task.simulator == "metaworld")
# `mulv/paper` and `drqv2` have the published sizes, `mulv` ours; all start with the paper's random steps.
SEEING_OPTIONS: Options = {"learning_starts": 4000}
SEEING = {
    "mulv": Method("mulv"),
    "mulv/paper": Method("mulv", preset="paper"),
    "drqv2": Method("drqv2", preset="paper"),
    "dreamer": Method("dreamer"),
    "mwm": Method("mwm"),
}
SEEN = ("Pendulum-px", "cartpole-swingup-px", "metaworld/drawer-close-px")
# For a thin pole: decoded at half size relative to the mean frame, with changes at their own scale. A small
# embedding suffices; in a larger one similar poses have dissimilar codes, which hides velocities.
THIN: Options = {
    "batch_size": 256,
    "learning_rate": 1e-3,
    "encode_changes": True,
    "image.centred": True,
    "image.drawn": 32,
    "image.embedding_dim": 8,
    "image.kl_weight": 0.1,
    "image.pretraining": 1500,
}

PIXEL_SUITES = [
    Suite(
        "metaworld-50",
        "all of Meta-world from pixels",
        tasks=METAWORLD,
        methods=SEEING,
        steps=1_000_000,
        seeds=tuple(range(5)),
        options=SEEING_OPTIONS,
    ),
    Suite(
        "dmc-pixels",
        "the DeepMind Control Suite from pixels",
        tasks=DMC_PIXELS,
        methods=SEEING,
        steps=500_000,
        seeds=tuple(range(5)),
        options=SEEING_OPTIONS,
    ),
    Suite(
        "pixels-20k",
        "frames on a CPU: µLV-Rep with and without a past, and DrQ-v2 with the same windows and updates",
        tasks=SEEN,
        methods={
            "mulv": Method("mulv", preset="pixels"),
            "mulv/window-1": Method("mulv", {"window": 1}, preset="pixels"),
            "drqv2": Method("drqv2", {"scale_rewards": True}),
        },
        steps=20_000,
        seeds=tuple(range(3)),
        options={"eval_every": 2000, "env_workers": False},  # a run has one core
        # Twenty episodes, to estimate a success rate.
        options_of={"metaworld/drawer-close-px": {"eval_every": 4000, "eval_episodes": 20}},
    ),
    Suite(
        "cartpole-200k",
        "a pole swung up from frames, each action held for eight steps",
        tasks=("cartpole-swingup-px",),
        methods={
            "mulv": Method("mulv", THIN, preset="pixels"),
            "drqv2": Method("drqv2", {"scale_rewards": True}),
        },
        steps=200_000,
        seeds=tuple(range(3)),
        options={
            "action_repeat": 8,
            "replay_ratio": 2.0,
            "learning_starts": 8000,
            "eval_every": 10_000,
            "env_workers": False,
        },
    ),
]
