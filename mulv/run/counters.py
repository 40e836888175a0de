"""How far a run is."""

from dataclasses import dataclass


@dataclass
class Counters:
    """How far a run is."""

    env_steps: int = 0  # simulator steps, action repeat included
    agent_steps: int = 0  # decisions
    updates: int = 0  # gradient steps
    offline_updates: int = 0  # those of them on data alone, before the first step

    @property
    def clock(self) -> int:
        """What evaluations, logs and checkpoints go by: updates while offline, then environment steps too."""
        return self.offline_updates + self.env_steps


def crossed(before: int, after: int, every: int) -> bool:
    """Whether a multiple of `every` lies in (before, after]."""
    return every > 0 and after // every > before // every
