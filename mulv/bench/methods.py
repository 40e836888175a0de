"""The methods that suites compare, and shared options. Data only."""

from mulv.bench.suite import Method, Options

MULV, SAC, BEST_FO = Method("mulv"), Method("sac"), Method("mulv", preset="lvrep", full=True)

# What follows was measured with the defaults of then, which are the preset `early`.
EARLY_RUN: Options = {"learning_starts": 1000}
EARLY = Method("mulv", preset="early")
# Features and discount that were the defaults when most of these were measured.
FOURIER: Options = {"critic.family": "fourier", "gamma": 0.99}
PINK: Options = {"pink_noise_octaves": 8}
SCALED: Options = {"scale_rewards": True}
GAMMA_99: Options = {"gamma": 0.99}
# SAC with the trunk, window, backup and discount of µLV-Rep, so that only the representation differs.
EARLY_SAC_99 = Method("sac", {"window": 3, "n_step": 3, "trunk.activation": "elu"}, preset="early")
EARLY_SAC = Method("sac", {**EARLY_SAC_99.options, "gamma": 0.995}, preset="early")
# The textbook's SAC: plain networks and a temperature of 1 at the start, so that memory is all that differs.
PLAIN: Options = {"trunk.kind": "mlp", "initial_temperature": 1.0, "tau": 0.005}

# With a bonus, discrete actions are chosen greedily by Q + b̂; without one, entropy explores.
EXPLORING: Options = {
    "bonus.scale": 2.0,
    "discrete_policy": "greedy",
    "discrete_policy.exploration_rate": 0.0,
}
NO_BONUS = Method("mulv", {"bonus": "none"}, preset="early")
# Small networks for small tasks, and a Σ that is always up to date.
SMALL_OPTIONS: Options = {
    "trunk.width": 64,
    "trunk.depth": 1,
    "latent.dim": 32,
    "critic.features": 128,
    "batch_size": 64,
    "learning_rate": 1e-3,
    "bonus.form": "squared",
    "bonus.rebuild": 8,
    "bonus.rows": 64,
    "bonus.directions": 256,
    "update_every": 10,
}
# One-step backups: longer ones include the wrong digits in the data. Fast targets: the value of a newly found
# digit soon reaches the first one.
LOCK_OPTIONS: Options = {**SMALL_OPTIONS, "n_step": 1, "elbo.future": 1, "tau": 0.1, "learning_starts": 200}
# The actor maximises Q + b̂ in evaluations too, so b̂ has to decay.
FADING: Options = {**SMALL_OPTIONS, "learning_starts": 1000, "bonus.half_life": 10_000.0}
# A pendulum hardly moves in 20 ms, so each action is held for four steps.
SWINGING: Options = {**FADING, "action_repeat": 4, "bonus.half_life": 2500.0, "eval_every": 2000}
# The penalty for data of an exploring agent, and for data of a single policy: there it must outweigh the
# overestimation of Q outside the data, and Σ must be exact. Both were chosen on HalfCheetah-P, seed 100.
WIDE: Options = {"bonus.use": "pessimism", "bonus.scale": 3.0}
NARROW: Options = {
    "bonus.use": "pessimism",
    "bonus.scale": 30.0,
    "bonus.limit": 200.0,
    "bonus.rows": 64,
    "bonus.directions": 256,
}

ABLATIONS: dict[str, Options] = {
    "mulv": {},
    "mulv/no-elbo": {"elbo.weight": 0.0},
    "mulv/elbo-1": {"elbo.weight": 1.0},
    "mulv/posterior-learned": {"elbo.posterior": "learned"},
    "mulv/observations": {"elbo.predict_changes": False},
    "mulv/diagonal": {"latent.covariance": "diagonal"},
    "mulv/one-latent": {"latent.twins": False, "critic.features": 512},
    "mulv/no-critic-gradient": {"critic.trains_representation": False},
    "mulv/omega-fixed": {"critic.train_frequencies": False},
    "mulv/family-relu": {"critic.family": "relu"},
    "mulv/family-erf": {"critic.family": "erf"},
    "mulv/l-1": {"elbo.future": 1},
    "mulv/l-5": {"elbo.future": 5},
    "mulv/window-1": {"window": 1},
    "mulv/window-5": {"window": 5},
    "mulv/latent-32": {"latent.dim": 32},
    "mulv/latent-128": {"latent.dim": 128},
    "mulv/latent-512": {"latent.dim": 512},
    "mulv/features-64": {"critic.features": 64},
    "mulv/features-1024": {"critic.features": 1024},
    "mulv/1-step": {"n_step": 1},
}
