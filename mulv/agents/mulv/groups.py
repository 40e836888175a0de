"""Groups of µLV-Rep's options: what each part of it may be."""

from dataclasses import dataclass, field
from typing import Annotated, ClassVar, Literal

from mulv.agents.action_noise import ActionNoise
from mulv.core.elliptical import LIMIT
from mulv.core.features import Family
from mulv.core.limits import NOT_NEGATIVE, POSITIVE, SHARE, at_least
from mulv.core.options import Group


@dataclass(frozen=True)
class GaussianLatent(Group):
    """z is a Gaussian vector."""

    name: ClassVar[str] = "latent"
    kind: ClassVar[str] = "gaussian"
    dim: Annotated[int, at_least(1)] = 64
    """Dimension of z."""
    twins: bool = True
    """A z for each of the two critics, which makes them differ more."""
    covariance: Literal["isotropic", "diagonal"] = "isotropic"
    """One σ(x, a) for all dimensions of z, or one for each."""
    normalise: bool = True
    """Standardise the mean of p(z | x, a) over its entries, so that φ keeps its scale."""


@dataclass(frozen=True)
class CategoricalLatent(Group):
    """z is one of finitely many values, over which φ(x, a) is the vector p(· | x, a) itself."""

    name: ClassVar[str] = "latent"
    kind: ClassVar[str] = "categorical"
    dim: Annotated[int, at_least(1)] = 64
    """How many values z has."""
    twins: bool = True
    """A z for each of the two critics."""


@dataclass(frozen=True)
class RecurrenceConfig(Group):
    """A GRU over the window, beside its newest steps: what is shared over time needs less data."""

    name: ClassVar[str] = "recurrence"
    units: Annotated[int, at_least(1)] = 64
    """Size of the GRU's state."""
    direct: Annotated[int, at_least(1)] = 2
    """Newest observations that are also read directly."""


@dataclass(frozen=True)
class ElboConfig(Group):
    """How the representation is learned."""

    name: ClassVar[str] = "elbo"
    weight: Annotated[float, NOT_NEGATIVE] = 10.0
    """Weight of the ELBO beside the critic's error; 0 leaves only that."""
    future: Annotated[int, at_least(1)] = 3
    """l: steps after x_h that z must explain."""
    predict_changes: bool = True
    """Decode o_{h+1} − o_h at unit mean square instead of o_{h+1}."""
    predict_levels: bool = False
    """Decode o_{h+1} too, which a change alone does not say."""
    end_weight: Annotated[float, NOT_NEGATIVE] = 0.0
    """Weight of decoding whether the episode terminates, as 0 or 1."""
    code_weight: Annotated[float, NOT_NEGATIVE] = 0.0
    """Weight of decoding the next window's code, as the target encoder gives it."""
    decoder_depth: Annotated[int, NOT_NEGATIVE] = 1
    """Hidden layers of decoders and latent transition; 0 makes them linear in z."""
    posterior: Literal["prior", "learned"] = "prior"
    """q(z | x, a, o⁺): p(z | x, a) itself, so that z is a prediction, or a network of its own."""
    kl_weight: Annotated[float, NOT_NEGATIVE] = 0.1
    """β of the KL: the ELBO of a decoder of variance β, up to scale; 1 is unit variance."""
    kl_balance: Annotated[float | None, SHARE] = None
    """Share of the KL's gradient that moves p towards q. Default: plain KL."""
    free_nats: Annotated[float, NOT_NEGATIVE] = 0.0
    """KL below which it is not pressed further."""
    updates: Annotated[int, at_least(1)] = 1
    """Gradient steps on the ELBO per update, each on a batch of its own."""

    @property
    def decodes(self) -> tuple[bool, bool]:
        """Whether changes are decoded, and whether levels are."""
        return self.predict_changes, self.predict_levels or not self.predict_changes


@dataclass(frozen=True)
class ClosedFormConfig(Group):
    """E_{z~p}[w(z)] exactly, with w linear in random features."""

    name: ClassVar[str] = "critic"
    kind: ClassVar[str] = "closed_form"
    family: Family = "relu"
    """Random features that w is linear in."""
    features: Annotated[int, at_least(1)] = 256
    """M: how many, of each z."""
    lengthscale: Annotated[float, POSITIVE] = 1.0
    """Kernel width of the features, in units of the latent dimension's square root."""
    train_frequencies: bool = True
    """Train ω with the critic instead of leaving it as drawn."""
    ridge: Annotated[float | None, POSITIVE] = None
    """λ of a ridge solve over the batch, relative to the mean of ‖φ‖². Default: gradient steps on w."""
    trains_representation: bool = True
    """Let the critic's gradient into p(z | x, a); otherwise the critic stands on its moving average."""


@dataclass(frozen=True)
class MonteCarloConfig(ClosedFormConfig):
    """E_{z~p}[w(z)] over samples of z, as in the paper's text."""

    kind: ClassVar[str] = "monte_carlo"
    samples: Annotated[int, at_least(1)] = 20
    """Samples of z."""


@dataclass(frozen=True)
class DeepConfig(Group):
    """The published code's critic: nonlinear layers after the mean over samples of z."""

    name: ClassVar[str] = "critic"
    kind: ClassVar[str] = "deep"
    samples: Annotated[int, at_least(1)] = 20
    """Samples of z."""
    trains_representation: bool = True
    """Let the critic's gradient into p(z | x, a); otherwise the critic stands on its moving average."""


@dataclass(frozen=True)
class NetworkConfig(Group):
    """E_{z~p}[w(z)] with w a network: linear in p(z | x, a), and φ is its last hidden layer's mean."""

    name: ClassVar[str] = "critic"
    kind: ClassVar[str] = "network"
    depth: Annotated[int, at_least(1)] = 2
    """Hidden layers of w, of the trunk's kind and width."""
    samples: Annotated[int, at_least(1)] = 1
    """Samples of z, in mirrored pairs; 1 is the mean of z."""
    trains_representation: bool = True
    """Let the critic's gradient into p(z | x, a); otherwise the critic stands on its moving average."""


@dataclass(frozen=True)
class DistributionConfig(Group):
    """P(G ∈ bin | x, a) = E_{z~p}[P(G ∈ bin | z)]: the return's distribution, learned by cross-entropy."""

    name: ClassVar[str] = "critic"
    kind: ClassVar[str] = "distribution"
    depth: Annotated[int, at_least(1)] = 2
    """Hidden layers, of the trunk's kind and width."""
    samples: Annotated[int, at_least(1)] = 1
    """Samples of z, in mirrored pairs; 1 is the mean of z."""
    bins: Annotated[int, at_least(2)] = 101
    """Returns that have a probability, evenly spaced."""
    low: float = -200.0
    """The least of them; with rewards at unit scale, 1 / (1 − γ) is a return."""
    high: float = 300.0
    """The greatest."""
    sigma: Annotated[float, POSITIVE] = 0.75
    """Deviation of the Gaussian that a target becomes, in widths of a bin (HL-Gauss)."""
    trains_representation: bool = True
    """Let the critic's gradient into p(z | x, a); otherwise the critic stands on its moving average."""


@dataclass(frozen=True)
class SACPolicy(Group):
    """Soft actor-critic."""

    name: ClassVar[str] = "policy"
    kind: ClassVar[str] = "sac"
    initial_temperature: Annotated[float, POSITIVE] = 0.1
    """Weight of the entropy at the start; it is tuned from there."""
    target_entropy_per_action: float = -1.0
    """Entropy that the temperature is tuned to, per action dimension."""


@dataclass(frozen=True)
class DDPGPolicy(Group):
    """An actor without entropy, explored by noise."""

    name: ClassVar[str] = "policy"
    kind: ClassVar[str] = "ddpg"
    noise: ActionNoise = field(default_factory=ActionNoise)
    """Exploration noise, and the noise within updates."""


@dataclass(frozen=True)
class SoftPolicy(Group):
    """The softmax of Q over its temperature."""

    name: ClassVar[str] = "discrete_policy"
    kind: ClassVar[str] = "soft"
    initial_temperature: Annotated[float, POSITIVE] = 0.1
    """Weight of the entropy at the start; it is tuned from there."""
    entropy_share: Annotated[float, SHARE] = 0.1
    """Entropy that the temperature is tuned to, as a share of the uniform policy's."""


@dataclass(frozen=True)
class GreedyPolicy(Group):
    """The action of highest Q."""

    name: ClassVar[str] = "discrete_policy"
    kind: ClassVar[str] = "greedy"
    exploration_rate: Annotated[float, SHARE] = 0.1
    """Share of random actions while learning."""


@dataclass(frozen=True)
class BonusConfig(Group):
    """The bonus b̂ = min(scale · ‖φ‖_{Σ⁻¹}, limit) on rewards."""

    name: ClassVar[str] = "bonus"
    scale: Annotated[float, POSITIVE] = 0.1
    """α of the paper."""
    use: Literal["optimism", "pessimism"] = "optimism"
    """Add b̂ to rewards, to explore (Algorithm 1), or subtract it, to stay with the data (Algorithm 2)."""
    limit: Annotated[float, POSITIVE] = LIMIT
    """What b̂ is at most: 2 is the theory's, for rewards in [0, 1]."""
    form: Literal["norm", "squared"] = "norm"
    """‖φ‖_{Σ⁻¹}, or its square."""
    half_life: Annotated[float | None, POSITIVE] = None
    """Steps of data after which the scale has halved. Default: it is constant."""
    regularisation: Annotated[float, POSITIVE] = 0.01
    """λ of Σ = Σ_i φ_i φ_iᵀ + λI. States differ in a small part of φ: under a large λ all are alike."""
    rebuild: Annotated[int, at_least(1)] = 128
    """Updates after which Σ is rebuilt under the φ that is then."""
    rows: Annotated[int, at_least(1)] = 8
    """Rows of φ of each update that Σ is rebuilt from."""
    memory: Annotated[float, SHARE] = 0.75
    """Share of Σ that a rebuild keeps."""
    directions: Annotated[int, at_least(1)] = 128
    """Random directions that ‖φ‖_{Σ⁻¹} is measured along; as many as features make it exact."""


Latent = GaussianLatent | CategoricalLatent
Critic = ClosedFormConfig | MonteCarloConfig | DeepConfig | NetworkConfig | DistributionConfig
Policy = SACPolicy | DDPGPolicy
Discrete = SoftPolicy | GreedyPolicy
