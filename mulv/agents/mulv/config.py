"""Hyperparameters of µLV-Rep, and their named values."""

from dataclasses import dataclass, field, replace
from typing import Annotated

from mulv.agents.action_noise import ActionNoise
from mulv.agents.actor_critic import MEASURED, ActorCriticConfig
from mulv.agents.base import GAMMA_PER_STEP
from mulv.agents.mulv.groups import (
    BonusConfig,
    ClosedFormConfig,
    Critic,
    DDPGPolicy,
    DeepConfig,
    Discrete,
    ElboConfig,
    GaussianLatent,
    Latent,
    MonteCarloConfig,
    NetworkConfig,
    Policy,
    RecurrenceConfig,
    SACPolicy,
    SoftPolicy,
)
from mulv.agents.mulv.vae import ImageConfig
from mulv.core.errors import MulvError
from mulv.core.limits import STEP, at_least
from mulv.nets.trunk import TrunkConfig


@dataclass(frozen=True)
class MuLVConfig(ActorCriticConfig):
    """Hyperparameters of µLV-Rep."""

    window: Annotated[int, at_least(1)] = 3
    """L: observations in the window x_h."""
    n_step: Annotated[int, at_least(1)] = 3
    """Rewards summed before the critic bootstraps: the L-step backup."""
    gamma: Annotated[float | None, STEP] = GAMMA_PER_STEP
    """Discount per decision. None: 0.995 for each step of the simulator that it lasts."""
    trunk: TrunkConfig = field(default_factory=lambda: TrunkConfig(activation="elu"))
    """The body of the window's encoder; actor, latents and decoders have its width and one layer more."""
    recurrence: RecurrenceConfig | None = None
    """Read the window by a GRU too, which long windows want. Default: none."""
    latent: Latent = field(default_factory=GaussianLatent)
    """What z is: --latent gaussian or categorical."""
    elbo: ElboConfig = field(default_factory=ElboConfig)
    """How the representation is learned."""
    critic: Critic = field(default_factory=ClosedFormConfig)
    """How Q is computed: --critic closed_form, monte_carlo, network, distribution or deep."""
    policy: Policy = field(default_factory=SACPolicy)
    """Where actions are continuous: --policy sac or ddpg."""
    policy_reads_window: bool = False
    """Show the policy the window itself beside its code."""
    discrete_policy: Discrete = field(default_factory=SoftPolicy)
    """Where actions are discrete: --discrete-policy soft or greedy."""
    bonus: BonusConfig | None = None
    """Exploration or pessimism. Default: none."""
    image: ImageConfig | None = None
    """Where a task shows frames: the VAE that makes vectors of them. Default: one of the usual size."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.recurrence is not None:
            if not self.normalise_observations:
                raise MulvError("recurrence reads whitened observations; leave normalise_observations on")
            if self.recurrence.direct > self.window:
                raise MulvError(
                    f"recurrence.direct is {self.recurrence.direct}; it must be at most window, {self.window}"
                )
        if self.elbo.code_weight and self.trunk.depth == 0:
            raise MulvError("without a trunk the window has no code; leave elbo.code_weight at 0")
        if self.latent.kind == "categorical" and self.critic.kind != "closed_form":
            raise MulvError("a categorical latent is enumerated exactly; it goes with --critic closed_form")
        if self.bonus is None:
            return
        if self.bonus.rows > self.batch_size:
            raise MulvError(
                f"bonus.rows is {self.bonus.rows}; it must be at most batch_size, {self.batch_size}"
            )
        if self.critic.kind in ("deep", "distribution"):
            raise MulvError(
                f"a bonus needs features whose weights are learned; --critic {self.critic.kind} has none: "
                "use --critic closed_form or network"
            )


PAPER_IMAGE = ImageConfig(
    embedding_dim=100, channels=32, batch_size=256, pretraining=10_000, every=1, learning_rate=1e-4
)
# The text: its table's sizes and rates, the ELBO as it is, quadrature by samples, the critic apart.
PAPER = MuLVConfig(
    gamma=0.99,
    trunk=TrunkConfig("mlp", 1024, 2),
    learning_rate=1e-4,
    tau=0.01,
    latent=GaussianLatent(dim=100, twins=False, covariance="diagonal", normalise=False),
    elbo=ElboConfig(weight=1.0, future=1, predict_changes=False, posterior="learned", kl_weight=1.0),
    critic=MonteCarloConfig(
        features=512, family="fourier", train_frequencies=False, trains_representation=False
    ),
    policy=SACPolicy(initial_temperature=1.0),
    discrete_policy=SoftPolicy(initial_temperature=1.0),
    image=PAPER_IMAGE,
)

DEFAULT = MuLVConfig(
    **vars(MEASURED),
    latent=GaussianLatent(dim=256),
    elbo=ElboConfig(future=1, predict_levels=True, end_weight=10.0),
    critic=NetworkConfig(trains_representation=False),  # Q = E_z[w(z)], on features learned by the ELBO alone
    policy_reads_window=True,
)

PRESETS = {
    "default": DEFAULT,
    "early": MuLVConfig(),  # the default before, which most figures of short runs are of
    "paper": PAPER,
    # The public code for frames: DDPG, critics with layers of their own on samples of z, shifted frames; no
    # pre-training.
    "paper-code": replace(
        PAPER,
        critic=DeepConfig(),
        policy=DDPGPolicy(ActionNoise(steps=250_000)),
        image=replace(PAPER_IMAGE, pretraining=0, pad=4),
    ),
    # Frames on a CPU: fewer windows in an update. Rewards of a task that is seen may be of any size. Features
    # and discount are those it was measured with.
    "pixels": MuLVConfig(
        batch_size=64, critic=ClosedFormConfig(family="fourier"), gamma=0.99, scale_rewards=True
    ),
    # Full observation: the window is one observation. For the -F tasks; the paper's reference Best-FO.
    "lvrep": replace(DEFAULT, window=1, critic_sees_rewards=False),
}
