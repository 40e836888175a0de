"""The suites: what is compared, on what, for how long. Data only."""

from pathlib import Path

from mulv.bench.suite import Method, Options, Suite, read_suite
from mulv.core.errors import MulvError
from mulv.core.names import lookup

MULV, LATER = Method("mulv"), "which is not built yet"
# SAC on the same trunk, window and backup as µLV-Rep, so that the representation is all that differs.
SAC = Method("sac", {"window": 3, "n_step": 3, "trunk.activation": "elu"})
BEST_FO = Method("mulv", preset="lvrep", full=True)  # the paper's reference: full observation, window of one
# The textbook's SAC: plain networks and α = 1 at the start, so that memory is all that differs.
PLAIN: Options = {"trunk.kind": "mlp", "initial_temperature": 1.0, "tau": 0.005}

_PAPER = "HalfCheetah Humanoid Walker Ant Hopper Pendulum cheetah-run walker-run hopper-hop humanoid-run"
MASKED = tuple(f"{name}-P" for name in _PAPER.split())  # dm_control's hopper-hop is the paper's Hopper-run
MBBL = tuple(f"{name}-P-mbbl" for name in _PAPER.split()[:6])
_DMC = """
    acrobot-swingup reacher-easy reacher-hard finger-turn_easy manipulation-reach_duplo quadruped-walk
    quadruped-run cartpole-swingup_sparse hopper-hop cheetah-run walker-run
"""
_METAWORLD = """
    assembly basketball bin-picking box-close button-press button-press-topdown button-press-topdown-wall
    button-press-wall coffee-button coffee-pull coffee-push dial-turn disassemble door-close door-lock
    door-open door-unlock drawer-close drawer-open faucet-close faucet-open hammer hand-insert handle-press
    handle-press-side handle-pull handle-pull-side lever-pull peg-insert-side peg-unplug-side
    pick-out-of-hole pick-place pick-place-wall plate-slide plate-slide-back plate-slide-back-side
    plate-slide-side push push-back push-wall reach reach-wall shelf-place soccer stick-pull stick-push
    sweep sweep-into window-close window-open
"""
DMC_PIXELS = tuple(f"{name}-px" for name in _DMC.split())
METAWORLD = tuple(f"metaworld/{name}-px" for name in _METAWORLD.split())
POSITIONS = ("HalfCheetah-P", "Hopper-P", "Walker-P", "Ant-P", "Pendulum-P")

ABLATIONS: dict[str, Options] = {
    "mulv": {},
    "mulv/no-elbo": {"elbo_weight": 0.0},
    "mulv/elbo-1": {"elbo_weight": 1.0},
    "mulv/posterior-learned": {"posterior": "learned"},
    "mulv/observations": {"predict_changes": False},
    "mulv/tau-0.005": {"tau": 0.005},
    "mulv/no-critic-gradient": {"critic_trains_representation": False},
    "mulv/omega-fixed": {"train_frequencies": False},
    "mulv/family-relu": {"family": "relu"},
    "mulv/family-erf": {"family": "erf"},
    "mulv/latent-free": {"normalise_latent": False},
    "mulv/trunk-relu": {"trunk.activation": "relu"},
    "mulv/l-1": {"future": 1},
    "mulv/l-5": {"future": 5},
    "mulv/window-1": {"window": 1},
    "mulv/window-5": {"window": 5},
    "mulv/latent-32": {"latent_dim": 32},
    "mulv/latent-128": {"latent_dim": 128},
    "mulv/latent-512": {"latent_dim": 512},
    "mulv/features-128": {"features": 128},
    "mulv/features-2048": {"features": 2048},
    "mulv/1-step": {"n_step": 1},
}


def _variants(algo: str, table: dict[str, Options]) -> dict[str, Method]:
    return {name: Method(algo, options) for name, options in table.items()}


def _seeds(number: int, first: int = 0) -> tuple[int, ...]:
    return tuple(range(first, first + number))


_ALL = [
    Suite(
        "quick",
        "a small honest subset: two cores finish it within the hour",
        tasks=("Pendulum-P", "HalfCheetah-P", "Hopper-P", "walker-run-P"),
        methods={"mulv": MULV, "sac": SAC},
        steps=15_000,
        steps_of={"Pendulum-P": 10_000},
        seeds=_seeds(3),
        options={"eval_every": 1500},
    ),
    Suite(
        "masked-control",
        "the paper's table: velocities masked, Best-FO on full observations as reference",
        tasks=MASKED,
        methods={"mulv": MULV, "sac": SAC, "lvrep": BEST_FO},
        steps=200_000,
        seeds=_seeds(4),
    ),
    Suite(
        "masked-control-mbbl",
        "the same with the rewards and terminations the paper's MuJoCo columns were measured under",
        tasks=MBBL,
        methods={"mulv": MULV, "sac": SAC, "lvrep": BEST_FO},
        steps=200_000,
        seeds=_seeds(4),
    ),
    Suite(
        "ablate-window",
        "how much memory: L = 1, 3, 5",
        tasks=MASKED,
        methods=_variants("mulv", {f"mulv/window-{n}": {"window": n} for n in (1, 3, 5)}),
        steps=200_000,
        seeds=_seeds(4),
    ),
    Suite(
        "ablate-latent",
        "how large a latent: 128, 512, 2048",
        tasks=MASKED,
        methods=_variants("mulv", {f"mulv/latent-{n}": {"latent_dim": n} for n in (128, 512, 2048)}),
        steps=200_000,
        seeds=_seeds(4),
    ),
    Suite(
        "metaworld-50",
        "all of Meta-world from pixels",
        tasks=METAWORLD,
        methods={name: Method(name) for name in ("mulv", "drqv2", "dreamer", "mwm")},
        steps=1_000_000,
        seeds=_seeds(5),
        options={"action_repeat": 2},
    ),
    Suite(
        "dmc-pixels",
        "the DeepMind Control Suite from pixels",
        tasks=DMC_PIXELS,
        methods={name: Method(name) for name in ("mulv", "drqv2", "dreamer", "mwm")},
        steps=500_000,
        seeds=_seeds(5),
        options={"action_repeat": 2},
    ),
    Suite(
        "exploration",
        "sparse rewards, with the ellipsoid's bonus and without",
        tasks=("MountainCarContinuous-P", "pendulum-swingup-P", "cartpole-swingup_sparse-P"),
        methods={"mulv": MULV, "mulv/no-bonus": MULV, "sac": SAC},
        steps=100_000,
        seeds=_seeds(3),
        awaits=f"the exploration bonus, {LATER}",
    ),
    Suite(
        "offline",
        "learning from data alone, with the ellipsoid's penalty and without",
        tasks=("Pendulum-P", "HalfCheetah-P", "Hopper-P"),
        methods={
            "mulv": Method("mulv", awaits=f"the penalty, {LATER}"),
            "mulv/no-penalty": MULV,
            "bc": Method("bc"),
        },
        steps=50_000,
        seeds=_seeds(3),
        data="datasets/{task}/medium",
    ),
    Suite(
        "positions-30k",
        "µLV-Rep against SAC-MLP with the same trunk, window, replay ratio and backup",
        tasks=POSITIONS,
        methods={"mulv": Method("mulv", {"window": 3, "n_step": 3}), "sac": SAC},
        steps=30_000,
        steps_of={"Pendulum-P": 15_000},
        seeds=_seeds(3),
    ),
    Suite(
        "ablations-20k",
        "what each choice is worth; the seeds are those of no comparison with another method",
        tasks=("HalfCheetah-P",),
        methods=_variants("mulv", ABLATIONS),
        steps=20_000,
        seeds=_seeds(2, first=100),
        options={"eval_every": 2500},
    ),
    Suite(
        "pendulum-memory",
        "what memory alone is worth: SAC with a window of four and of one",
        tasks=("Pendulum-P",),
        methods=_variants("sac", {"sac": {"window": 4, **PLAIN}, "sac/window-1": {"window": 1, **PLAIN}}),
        steps=20_000,
        seeds=_seeds(4),
    ),
    Suite(
        "first-steps",
        "SAC-MLP with our defaults on one task",
        tasks=("HalfCheetah-P",),
        methods={"sac": Method("sac", {"tau": 0.005})},
        steps=30_000,
        seeds=_seeds(1),
    ),
]

SUITES = {suite.name: suite for suite in _ALL}


def find_suite(name: str) -> Suite:
    """A suite by its name, or from a JSON file of one's own."""
    if not name:
        raise MulvError("say which suite; `mulv bench --list` shows them")
    return read_suite(Path(name)) if name.endswith(".json") else lookup("suite", name, SUITES)
