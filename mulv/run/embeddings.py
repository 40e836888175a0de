"""Embeddings of all frames in a replay, so that an update does not have to encode frames again.

An embedding is computed when its frame is written, with the encoder of that time. From time to time all are
computed again: so rarely that this costs only a few frames per update on average, and after every checkpoint.
A checkpoint does not store embeddings, so a resumed run must compute the same ones.
"""

import numpy as np

from mulv.agents.base import AbstractAgent
from mulv.data import Replay
from mulv.run import compiled

CHUNK = 16  # frames embedded at once: a fixed number, so that an embedding is always the same to the bit


class Embeddings:
    """The embedding of each row of a replay."""

    def __init__(self, agent: AbstractAgent, replay: Replay):
        encoder = agent.encoder
        assert encoder is not None
        self._agent, self._encoder, self._replay = agent, encoder, replay
        rows = replay.layout.ring * replay.layout.lanes
        self._vectors = np.zeros((rows, encoder.dim), np.float32)
        self._known = np.zeros_like(replay.counts)  # rows of each lane (environment) that have an embedding
        self._due = 0  # number of updates at which all are computed again

    def forget(self) -> None:
        """Compute all embeddings again when they are next needed."""
        self._due = 0

    def at(self, updates: int, state: compiled.Packed) -> np.ndarray:
        """The embeddings by position of the row in the replay; zeros until the encoder is pretrained."""
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
