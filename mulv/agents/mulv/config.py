"""Hyperparameters of µLV-Rep, and their named values."""

from dataclasses import dataclass, field, replace
from typing import Literal

from mulv.agents.action_noise import NoisyConfig
from mulv.agents.mulv.vae import ImageConfig
from mulv.core.elliptical import LIMIT
from mulv.core.errors import MulvError
from mulv.core.features import Family
from mulv.nets.trunk import TrunkConfig


@dataclass(frozen=True)
class MuLVConfig(NoisyConfig):
    """Hyperparameters of µLV-Rep."""

    window: int = 3
    """L: observations in the window x_h."""
    n_step: int = 3
    """Rewards summed before the critic bootstraps: the L-step backup."""
    gamma: float = 0.995
    """Discount per decision. The paper's 0.99 looks a hundred steps ahead, where a fall hardly counts yet."""
    trunk: TrunkConfig = field(default_factory=lambda: TrunkConfig(activation="elu"))
    """The body of the window's encoder; actor, latents and decoders have its width and one layer more."""
    tau: float = 0.02
    """Step of the target networks towards the trained ones, per update."""

    latent: Literal["gaussian", "categorical"] = "gaussian"
    """What z is: a Gaussian vector, or one of finitely many values."""
    latent_dim: int = 64
    """Dimension of z, or how many values it has."""
    twin_latents: bool = True
    """A z, with its p(z | x, a), for each of the two critics; the lower of two that read the same z is as
    high as either, and so no guard against overestimation."""
    spread: Literal["isotropic", "diagonal"] = "isotropic"
    """Whether a Gaussian z has one σ(x, a) for all its dimensions, or one for each."""
    normalise_latent: bool = True
    """Give the mean of p(z | x, a) zero mean and unit variance over its entries, so that φ's scale stays."""
    future: int = 3
    """l: steps after x_h that z must elbo_terms."""
    predict_changes: bool = True
    """Decode o_{h+1} − o_h at unit mean square instead of o_{h+1}, in which slow tasks hide their motion."""
    decoder_depth: int = 1
    """Hidden layers of decoders and latent transition; 0 makes them linear in z."""
    elbo_weight: float = 10.0
    """Weight of the ELBO beside the critic's error; 0 leaves the critic alone with its network."""
    posterior: Literal["prior", "learned"] = "prior"
    """q(z | x, a, o⁺) of the ELBO: p(z | x, a) itself, so that z is a prediction, or a network of its own."""
    kl_weight: float = 0.1
    """Weight β of KL(q ‖ p): up to its scale the ELBO of a decoder of variance β; 1 is unit variance."""
    kl_balance: float | None = None
    """Share of the KL's gradient that moves p towards q, the rest moves q towards p. Default: plain KL."""
    free_nats: float = 0.0
    """KL below which it is not pressed further."""
    representation_updates: int = 1
    """Gradient steps on the ELBO per update, each on a batch of its own."""
    critic_trains_representation: bool = True
    """Let the critic's gradient into p(z | x, a); otherwise the critic stands on its moving average."""

    critic: Literal["closed_form", "monte_carlo", "deep"] = "closed_form"
    """E_{z~p}[w(z)] exactly, over samples of z, or over samples with nonlinear layers after it."""
    family: Family = "relu"
    """Random features that w is linear in."""
    features: int = 256
    """M: how many, of each z."""
    lengthscale: float = 1.0
    """Kernel width of the features, in units of the latent dimension's square root."""
    train_frequencies: bool = True
    """Train ω with the critic instead of leaving it as drawn."""
    noise_samples: int = 20
    """Samples of z, for the critics that sample."""
    solver: Literal["sgd", "ridge"] = "sgd"
    """Least squares policy evaluation: gradient steps on w, or a ridge solve over the batch."""
    ridge: float = 1e-3
    """λ of the ridge solve, relative to the batch's mean of ‖φ‖²."""

    planner: Literal["sac", "ddpg"] = "sac"
    """Where actions are continuous: an actor with entropy, or one with noise (`noise_initial` and so on)."""
    initial_temperature: float = 0.1
    """Entropy weight α at the start; it is tuned from there."""
    target_entropy_per_action: float = -1.0
    """Entropy that α is tuned to, per continuous action dimension."""
    discrete_policy: Literal["soft", "greedy"] = "soft"
    """Where actions are discrete: softmax of Q/α, or its maximum."""
    discrete_entropy: float = 0.1
    """Entropy that α is tuned to, as a share of the uniform policy's."""
    exploration_rate: float = 0.1
    """Share of random actions while learning, for the greedy policy."""

    image: ImageConfig = field(default_factory=ImageConfig)
    """Where a task shows frames: the VAE that makes vectors of them."""

    bonus_scale: float = 0.0
    """α of the bonus b̂ = min(α ‖φ‖_{Σ⁻¹}, limit) on rewards; 0 is none."""
    bonus_limit: float = LIMIT
    """What b̂ is at most: 2 is the theory's, for rewards in [0, 1]. Larger rewards want a larger one."""
    bonus_use: Literal["optimism", "pessimism"] = "optimism"
    """Add b̂ to rewards, to explore (Algorithm 1), or subtract it, to stay with the data (Algorithm 2)."""
    bonus_form: Literal["norm", "squared"] = "norm"
    """‖φ‖_{Σ⁻¹}, or its square."""
    bonus_half_life: float | None = None
    """Steps of data after which α has halved. Default: it is constant."""
    bonus_regularisation: float = 0.01
    """λ of Σ = Σ_i φ_i φ_iᵀ + λI. States differ in a small part of φ: under a large λ all are alike."""
    bonus_rebuild: int = 128
    """Updates after which Σ is rebuilt under the φ that is then."""
    bonus_rows: int = 8
    """Rows of φ of each update that Σ is rebuilt from."""
    bonus_memory: float = 0.75
    """Share of Σ that a rebuild keeps, so that it is of more data than its own rows."""
    bonus_directions: int = 128
    """Random directions along which ‖φ‖_{Σ⁻¹} is measured; as many as features make it exact, and dearer."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in (
            "latent_dim",
            "future",
            "features",
            "noise_samples",
            "representation_updates",
            "bonus_rebuild",
            "bonus_rows",
            "bonus_directions",
        ):
            if getattr(self, name) < 1:
                raise MulvError(f"{name} is {getattr(self, name)}; it must be at least 1")
        for name in ("lengthscale", "ridge", "initial_temperature", "bonus_regularisation", "bonus_limit"):
            if not getattr(self, name) > 0:
                raise MulvError(f"{name} is {getattr(self, name)}; it must be positive")
        for name in ("elbo_weight", "kl_weight", "free_nats", "decoder_depth", "bonus_scale"):
            if not getattr(self, name) >= 0:
                raise MulvError(f"{name} is {getattr(self, name)}; it must not be negative")
        if not 0 < self.tau <= 1:
            raise MulvError(f"tau is {self.tau}; it must lie in (0, 1]")
        for name in ("kl_balance", "discrete_entropy", "exploration_rate", "bonus_memory"):
            value = getattr(self, name)
            if value is not None and not 0 <= value <= 1:
                raise MulvError(f"{name} is {value}; it must lie in [0, 1]")
        if self.solver == "ridge" and self.critic == "deep":
            raise MulvError("the deep critic is not linear in w, so it has no ridge solve; use --solver sgd")
        if self.latent == "categorical" and self.critic != "closed_form":
            raise MulvError("a categorical latent is enumerated exactly; it goes with --critic closed_form")
        if self.bonus_half_life is not None and not self.bonus_half_life > 0:
            raise MulvError(f"bonus_half_life is {self.bonus_half_life}; it must be positive")
        if self.bonus_scale and self.bonus_rows > self.batch_size:
            raise MulvError(
                f"bonus_rows is {self.bonus_rows}; it must be at most batch_size, {self.batch_size}"
            )
        if self.bonus_scale and self.critic == "deep":
            raise MulvError(
                "the deep critic has no φ that Q is linear in, so no bonus; use --critic closed_form"
            )


# The text: its table's sizes and rates, the ELBO as it is, quadrature by samples, the critic apart.
PAPER = MuLVConfig(
    gamma=0.99,
    trunk=TrunkConfig("mlp", 1024, 2),
    learning_rate=1e-4,
    tau=0.01,
    latent_dim=100,
    twin_latents=False,
    features=512,
    spread="diagonal",
    future=1,
    normalise_latent=False,
    predict_changes=False,
    elbo_weight=1.0,
    posterior="learned",
    kl_weight=1.0,
    critic="monte_carlo",
    family="fourier",
    train_frequencies=False,
    critic_trains_representation=False,
    initial_temperature=1.0,
    image=ImageConfig(
        embedding_dim=100, channels=32, batch_size=256, pretraining=10_000, every=1, learning_rate=1e-4
    ),
)

PRESETS = {
    "default": MuLVConfig(),
    "paper": PAPER,
    # The public code for frames: DDPG, critics with layers of their own on samples of z, shifted frames; no
    # pre-training.
    "paper-code": replace(
        PAPER,
        critic="deep",
        planner="ddpg",
        noise_steps=250_000,
        critic_trains_representation=True,
        image=replace(PAPER.image, pretraining=0, pad=4),
    ),
    # Frames on a CPU: fewer windows in an update. Rewards of a task that is seen may be of any size. Features
    # and discount are those it was measured with.
    "pixels": MuLVConfig(batch_size=64, family="fourier", gamma=0.99, scale_rewards=True),
    # Full observation: the window is one observation. For the -F tasks; the paper's reference Best-FO.
    "lvrep": MuLVConfig(window=1),
}
