"""What µLV-Rep and SAC-MLP have in common, so that a comparison is one of representations."""

from dataclasses import dataclass
from typing import Annotated, Literal

from mulv.agents.base import WindowConfig
from mulv.core.limits import STEP, at_least
from mulv.core.spec import EnvSpec
from mulv.nets.trunk import TrunkConfig


@dataclass(frozen=True)
class ActorCriticConfig(WindowConfig):
    """Hyperparameters of a policy that is trained by two critics."""

    tau: Annotated[float, STEP] = 0.02
    """Step of the target networks towards the trained ones, per update."""
    double_q: Literal["lower", "mean"] = "lower"
    """What targets and policy believe of the two critics."""
    policy_every: Annotated[int, at_least(1)] = 1
    """Updates from one step of the policy to the next."""
    critic_sees_rewards: bool = False
    """Show the critic past rewards, which are there while learning; the policy acts without them."""

    def reads_rewards(self, spec: EnvSpec) -> bool:
        """Whether critics see past rewards. Where actions are discrete, the critic is the policy."""
        return self.critic_sees_rewards and not spec.discrete


# What won on our own measurements (docs/decisions.md has the evidence); both agents have it as their default.
MEASURED = ActorCriticConfig(
    gamma=None,
    window=8,
    n_step=3,
    batch_size=128,
    scale_rewards=True,
    encode_changes=True,
    critic_sees_rewards=True,
    policy_every=2,
    trunk=TrunkConfig(activation="elu"),
)
