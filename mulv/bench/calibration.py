"""Suites for choosing defaults, with 100K steps and three tuning seeds."""

from mulv.bench.suite import Method, Options, Suite

# Rewards and changes of unit scale, the usual discount, and more random steps at the start.
UNIT_SCALE: Options = {"scale_rewards": True, "encode_changes": True, "gamma": 0.99, "learning_starts": 5000}
_SAC: Options = {"n_step": 3, "trunk.activation": "elu"}  # as µLV-Rep's
_TWICE = {task: {"action_repeat": 2} for task in ("walker-run-P", "cheetah-run-P")}
_UNSCALED: Options = {"scale_rewards": False, "encode_changes": False, "learning_starts": 1000}
_ENTROPY: Options = {"policy.target_entropy_per_action": -0.5, "policy.initial_temperature": 0.01}


def _methods(variant: str, window: int, full: bool = False) -> dict[str, Method]:
    return {
        f"mulv/{variant}": Method("mulv", {"window": window}, "early", full),
        f"sac/{variant}": Method("sac", {"window": window, **_SAC}, "early", full),
    }


CALIBRATION = Suite(
    "calibrate-100k",
    "the full state against published curves, and what positions cost: windows of 3 and 8",
    tasks=("HalfCheetah-P", "walker-run-P", "cheetah-run-P", "Walker-P"),
    methods={**_methods("full", 1, full=True), **_methods("window-3", 3), **_methods("window-8", 8)},
    steps=100_000,
    seeds=(100, 101, 102),
    options=UNIT_SCALE,
    options_of=_TWICE,
)
VALUES = Suite(
    "values-100k",
    "critics, targets and entropy, one change at a time from calibrate-100k's window of 3",
    tasks=("walker-run-P", "cheetah-run-P", "HalfCheetah-P"),
    methods={
        "mulv/fourier": Method("mulv", {"critic.family": "fourier"}, "early"),
        # The options that reached 6002 on HalfCheetah-P at 200K steps, one seed (masked-control-fourier).
        "mulv/fourier-unscaled": Method("mulv", {"critic.family": "fourier", **_UNSCALED}, "early"),
        "mulv/elbo-1": Method("mulv", {"elbo.weight": 1.0}, "early"),
        "mulv/network": Method("mulv", {"critic": "network"}, "early"),
        "mulv/distribution": Method("mulv", {"critic": "distribution"}, "early"),
        "mulv/entropy-half": Method("mulv", _ENTROPY, "early"),
        "mulv/mean-of-two": Method("mulv", {"double_q": "mean"}, "early"),
        "mulv/tau-0.005": Method("mulv", {"tau": 0.005}, "early"),
        # With a shorter horizon critics rank actions better, and values converge sooner (critic-truth).
        "mulv/gamma-0.97": Method("mulv", {"gamma": 0.97}, "early"),
        "mulv/1-step": Method("mulv", {"n_step": 1}, "early"),
    },
    steps=100_000,
    seeds=(100, 101, 102),
    options={**UNIT_SCALE, "window": 3},
    options_of=_TWICE,
)
MEMORY = Suite(
    "memory-100k",
    "how a longer memory is best read: flat windows, and a GRU over the window",
    tasks=("HalfCheetah-P", "cheetah-run-P", "walker-run-P"),
    methods={
        "mulv/gru-16": Method("mulv", {"window": 16, "recurrence.units": 64}, "early"),
        "mulv/window-16": Method("mulv", {"window": 16}, "early"),
    },
    steps=100_000,
    seeds=(100, 101, 102),
    options=UNIT_SCALE,
    options_of=_TWICE,
)
