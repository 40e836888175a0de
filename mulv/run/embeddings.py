"""Vectors that stand for the frames of a replay, so that an update need not look at frames again.

They are made by the agent as it was when a frame came in, or when all were last made anew. That is due after
so many updates that on average few frames an update are looked at; and after every checkpoint, which does not
hold the vectors: so a run that goes on from one makes the same.
"""

import numpy as np

from mulv.agents.base import AbstractAgent
from mulv.data import Replay
from mulv.run import compiled

CHUNK = 16  # frames embedded at once: always as many, so that a frame's vector is the same to the bit


class Embeddings:
    """The vector of each row of a replay."""

    def __init__(self, agent: AbstractAgent, replay: Replay):
        encoder = agent.encoder
        assert encoder is not None
        self._agent, self._encoder, self._replay = agent, encoder, replay
        rows = replay.layout.ring * replay.layout.lanes
        self._vectors = np.zeros((rows, encoder.dim), np.float32)
        self._known = np.zeros_like(replay.counts)  # rows of each lane that have theirs
        self._due = 0  # update at which all are made anew

    def forget(self) -> None:
        """Make all anew when they are next needed."""
        self._due = 0

    def at(self, updates: int, state: compiled.Packed) -> np.ndarray:
        """The vectors, by place of the row: of every row there is, once the agent is pre-trained."""
        if updates < self._encoder.pretraining:
            return self._vectors
        if updates >= self._due:
            self._known[:] = 0
            self._due = updates + -(-len(self._replay) // self._encoder.refreshed_per_update)
        new = self._replay.written_since(self._known)
        for first in range(0, new.size, CHUNK):
            places = new[first : first + CHUNK]
            padded = np.pad(places, (0, CHUNK - places.size), mode="edge")
            vectors = compiled.embed(self._agent, state, self._replay.obs_at(padded))
            self._vectors[places] = vectors[: places.size]
        self._known[:] = self._replay.counts
        return self._vectors
