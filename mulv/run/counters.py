"""Counters of a run's steps and updates."""

from dataclasses import dataclass


@dataclass
class Counters:
    """Steps and updates that a run has done so far."""

    env_steps: int = 0  # simulator steps, action repeat included
    agent_steps: int = 0  # decisions of the agent
    updates: int = 0  # gradient steps
    offline_updates: int = 0  # updates on a dataset, before the first environment step; part of `updates`

    @property
    def clock(self) -> int:
        """Offline updates plus environment steps: the clock of evaluations, logs and checkpoints."""
        return self.offline_updates + self.env_steps


def crossed(before: int, after: int, every: int) -> bool:
    """Whether a multiple of `every` lies in (before, after]."""
    return every > 0 and after // every > before // every
