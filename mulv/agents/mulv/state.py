"""The state of µLV-Rep."""

from typing import NamedTuple

from mulv.agents.mulv.critic import LinearCritic
from mulv.agents.mulv.exploration import Optimism
from mulv.agents.mulv.representation import Representation
from mulv.core.learner import Trained, polyak
from mulv.core.normalise import ObsMoments, RunningMoments
from mulv.core.types import Batch


class MuLVState(NamedTuple):
    """Everything µLV-Rep learns."""

    representation: Trained
    critic: Trained
    actor: Trained  # no parameters where actions are discrete
    log_temperature: Trained
    target_representation: Representation
    target_critic: LinearCritic
    obs_moments: ObsMoments
    reward_moments: RunningMoments
    optimism: Optimism | None  # None without a bonus

    def with_moments_of(self, batch: Batch) -> "MuLVState":
        """The state with running statistics updated by this batch."""
        o_h, o_h1, r_h = batch.x_h.obs[:, -1], batch.future.obs[:, 0], batch.future.rewards[:, 0]
        return self._replace(
            obs_moments=self.obs_moments.update(o_h, o_h1),
            reward_moments=self.reward_moments.update(r_h),
        )

    def with_targets_moved(self, tau: float) -> "MuLVState":
        """The state with target networks moved a fraction τ towards the trained ones."""
        return self._replace(
            target_representation=polyak(self.target_representation, self.representation.params, tau),
            target_critic=polyak(self.target_critic, self.critic.params, tau),
        )
