"""Vectors kept for the frames of a replay: by which state each was made, and when all are made anew."""

from dataclasses import dataclass
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

from mulv.agents.base import AbstractAgent
from mulv.agents.encoder import ObservationEncoder
from mulv.core.spec import BatchSpec, EnvSpec, Step
from mulv.data import Replay, ReplayLayout
from mulv.run.embeddings import Embeddings

SPEC = EnvSpec((64, 64, 3), 1, obs_dtype="uint8")
LANES, PER_UPDATE = 2, 4


@dataclass(frozen=True)
class Marks(AbstractAgent):
    """Has nothing but a state."""

    pretraining: int = 0
    batch_spec = BatchSpec(2, 1, 1, 1, 0.9, frames=1)

    def init(self, key):
        return jnp.float32(0)

    act = observe = init_memory = update = None

    @property
    def encoder(self):
        return Numbers(2, self.pretraining, PER_UPDATE)


class Numbers(ObservationEncoder):
    """Embeds a frame as (its number, the state's)."""

    def embed(self, state, o_h):
        return jnp.stack([o_h[0, 0, 0].astype(jnp.float32), state])

    pictures = None


def put(replay: Replay, numbers: list[int]) -> None:
    """A row in every lane for each number; lanes tell their frames apart by 100."""
    for number in numbers:
        frames = np.zeros((LANES, *SPEC.obs_shape), np.uint8)
        frames[:, 0, 0, 0] = number + 100 * np.arange(LANES)
        lane, nothing = np.arange(LANES), np.zeros(LANES)
        step = np.full(LANES, int(replay.counts[0]))
        replay.append(Step(lane, frames, nothing[:, None], nothing, nothing > 0, nothing > 0, step))


@pytest.fixture
def replay(tmp_path: Path) -> Replay:
    return Replay.create(tmp_path, ReplayLayout.of(SPEC, lanes=LANES, capacity=2 * 24, slack=0))


def made_by(embeddings: Embeddings, updates: int, state: float, rows: int) -> list[float]:
    """The states that rows of lane 0 have their vectors of; those of the others must be the same."""
    vectors = embeddings.at(updates, (jnp.float32(state),)).reshape(-1, LANES, 2)[:rows]
    np.testing.assert_array_equal(vectors[:, 0, 1], vectors[:, 1, 1])
    return vectors[:, 0, 1].tolist()


def test_every_row_has_the_vector_of_its_frame(replay):
    put(replay, list(range(1, 21)))  # more than are embedded at once
    vectors = Embeddings(Marks(None, SPEC), replay).at(0, (jnp.float32(3),)).reshape(-1, LANES, 2)
    for lane in range(LANES):
        np.testing.assert_array_equal(vectors[:20, lane, 0], 100 * lane + np.arange(1, 21))
    assert (vectors[:20, :, 1] == 3).all()
    assert not vectors[20:].any()


def test_a_row_keeps_its_vector_until_all_are_made_anew(replay):
    embeddings = Embeddings(Marks(None, SPEC), replay)
    put(replay, list(range(1, 9)))
    assert made_by(embeddings, 0, 1.0, 8) == [1] * 8
    put(replay, [9, 10])
    assert made_by(embeddings, 1, 2.0, 10) == [1] * 8 + [2] * 2
    due = LANES * 8 // PER_UPDATE  # rows there were, by those that an update may look at
    assert made_by(embeddings, due - 1, 3.0, 10) == [1] * 8 + [2] * 2
    assert made_by(embeddings, due, 4.0, 10) == [4] * 10
    assert made_by(embeddings, due + 1, 5.0, 10) == [4] * 10


def test_what_is_forgotten_is_made_anew(replay):
    embeddings = Embeddings(Marks(None, SPEC), replay)
    put(replay, [1, 2, 3])
    made_by(embeddings, 0, 1.0, 3)
    embeddings.forget()
    assert made_by(embeddings, 1, 2.0, 3) == [2] * 3


def test_before_pretraining_is_over_there_are_none(replay):
    embeddings = Embeddings(Marks(None, SPEC, pretraining=5), replay)
    put(replay, [1, 2, 3])
    assert made_by(embeddings, 4, 1.0, 3) == [0] * 3
    assert made_by(embeddings, 5, 2.0, 3) == [2] * 3


def test_rows_that_took_the_place_of_others_have_vectors_of_their_own(replay):
    embeddings = Embeddings(Marks(None, SPEC), replay)
    ring = replay.layout.ring
    put(replay, list(range(1, ring + 1)))
    made_by(embeddings, 0, 1.0, ring)
    put(replay, [61, 62])
    assert made_by(embeddings, 1, 2.0, ring) == [2] * 2 + [1] * (ring - 2)
    vectors = embeddings.at(1, (jnp.float32(2),)).reshape(-1, LANES, 2)
    assert vectors[:3, 0, 0].tolist() == [61, 62, 3]
