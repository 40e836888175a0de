"""Transitions of the replay in the latent space: means of p(z | x, a) on two principal components."""

from dataclasses import replace

import numpy as np

from mulv.agents.base import AbstractAgent
from mulv.core.spec import BatchSpec
from mulv.data import Replay
from mulv.run import compiled

POINTS = 1024  # a fixed number, so that the function is compiled once


def latent_projection(
    agent: AbstractAgent, state: compiled.Packed, replay: Replay
) -> dict[str, np.ndarray] | None:
    """Evenly spaced transitions of the replay, projected; None if the agent has no latent.

    `points` has two coordinates per transition, `share` is the fraction of the latents' variance along each
    of them, `age` is 0 for the oldest transition of its lane (environment) and 1 for the newest, and `reward`
    is its reward.
    """
    if not isinstance(agent.batch_spec, BatchSpec):  # a recurrent memory cannot be read from the replay
        return None
    spec = replace(agent.batch_spec, batch_size=POINTS)
    lane, t = replay.transitions(spec.window)
    chosen = np.linspace(0, t.size - 1, POINTS).astype(np.intp)
    lane, t = lane[chosen], t[chosen]
    batch = replay.cut(spec, lane, t)
    latents = compiled.latents(agent, state, compiled.Carry(batch.x_h, batch.a_h))
    if latents is None:
        return None
    points, share = principal_components(np.asarray(latents, np.float64))
    newest = np.maximum(replay.counts[lane] - 1, 1)
    return {"points": points, "share": share, "age": t / newest, "reward": batch.future.rewards[:, 0]}


def principal_components(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Coordinates along the first two principal components, and their shares of the variance."""
    centred = rows - rows.mean(axis=0)
    _, widths, directions = np.linalg.svd(centred, full_matrices=False)
    variance = np.square(widths)
    return centred @ directions[:2].T, variance[:2] / max(variance.sum(), 1e-12)
