"""µLV-Rep on frames: a VAE that makes vectors of them, and the agent on vectors."""

from dataclasses import replace
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mulv.agents import algorithm
from mulv.agents.mulv.agent import MuLV
from mulv.agents.mulv.config import PRESETS, MuLVConfig
from mulv.agents.mulv.normalisation import denormalise_prediction, normalise_batch
from mulv.agents.mulv.pixels import PixelMuLV
from mulv.agents.mulv.vae import ImageConfig, ImageVAE, frame_elbo_terms, learn_frames
from mulv.core.errors import MulvError
from mulv.core.learner import start_training
from mulv.core.options import with_options
from mulv.core.spec import EnvSpec, Step
from mulv.data import Replay, ReplayLayout
from mulv.envs.rendering.pendulum import draw_rod
from mulv.nets.augment import random_shift
from mulv.nets.image import normalise
from mulv.nets.trunk import TrunkConfig
from mulv.run import compiled

SPEC = EnvSpec((64, 64, 3), 1, obs_dtype="uint8")
TINY = with_options(
    MuLVConfig(
        window=2,
        n_step=2,
        batch_size=4,
        learning_rate=1e-2,
        trunk=TrunkConfig("mlp", 8, 1),
        image=ImageConfig(embedding_dim=3, channels=2, batch_size=2, pretraining=1, every=2),
    ),
    {"elbo.future": 1, "latent.dim": 4, "critic.features": 8},
)
AGENT = PixelMuLV(TINY, SPEC)
UPDATE = jax.jit(AGENT.update)
KEY, FIRST = jax.random.key(0), jnp.int32(0)
SEEN = jnp.zeros((2, 3))  # vectors that are kept
LENGTHS = (1, 3, 2, 7)  # decisions of the replay's episodes; the last is still running


@pytest.fixture(scope="module")
def replay(tmp_path_factory: pytest.TempPathFactory) -> Replay:
    """Rods at an angle of their own in every frame, which also has its number in the first pixels."""
    directory: Path = tmp_path_factory.mktemp("frames")
    kept = Replay.create(directory, ReplayLayout.of(SPEC, lanes=1, capacity=32, slack=0))
    rng, number = np.random.default_rng(0), 0
    for episode, length in enumerate(LENGTHS):
        for step in range(length + 1):
            frame = draw_rod(rng.uniform(-np.pi, np.pi))
            frame[0, 0] = number = number + 1
            last = step == length and episode < len(LENGTHS) - 1
            ends = np.array([last and episode == 0]), np.array([last and episode > 0])
            action, reward = rng.uniform(-1, 1, (1, 1)).astype("f4"), rng.normal(size=1).astype("f4")
            kept.append(Step(np.zeros(1, int), frame[None], action, reward, *ends, np.array([step])))
    return kept


@pytest.fixture(scope="module")
def seen(replay):
    """Transitions with their frames."""
    lane, t = replay.transitions(TINY.window)
    return jax.tree.map(jnp.asarray, replay.cut(AGENT.batch_spec, lane[2:6], t[2:6]))


@pytest.fixture(scope="module")
def batch(replay):
    """What an update learns from: vectors, and some frames."""
    vectors = 0.1 * np.random.default_rng(1).normal(size=(32, 3)).astype(np.float32)
    drawn = replay.sample(AGENT.batch_spec, 1, np.random.default_rng(0), vectors)
    return jax.tree.map(lambda leaf: jnp.asarray(leaf[0]), drawn)


@pytest.fixture(scope="module")
def state():
    return compiled.unpack(AGENT, compiled.init(AGENT, KEY))


def test_an_update_is_a_step_of_the_vae_and_one_on_vectors(state, batch):
    pretrained = state._replace(updates=jnp.int32(TINY.image.pretraining + 1))
    got, metrics = UPDATE(pretrained, batch, KEY)

    @jax.jit
    def expected(state, batch):
        vae, (vae_key, mulv_key) = state.vae.params, jax.random.split(KEY)
        noise = jax.random.normal(vae_key, (2, 3))
        terms = jax.vmap(lambda f, n: frame_elbo_terms(vae, f, n))(batch.frames, noise)
        return *AGENT.on_vectors.update(state.mulv, batch, mulv_key), jnp.mean(terms.error)

    mulv, on_vectors, error = expected(state, batch)
    assert metrics["image/error"] == pytest.approx(float(error), rel=1e-4)
    for name, value in on_vectors.items():
        assert metrics[name] == pytest.approx(float(value), rel=1e-3, abs=1e-4), name
    np.testing.assert_allclose(got.mulv.obs_moments.level.mean, mulv.obs_moments.level.mean, atol=1e-5)
    np.testing.assert_allclose(got.mulv.critic.params.weights, mulv.critic.params.weights, atol=1e-4)


def test_once_pre_trained_the_vae_learns_every_few_updates(state, batch):
    def learns(updates):
        after = UPDATE(state._replace(updates=jnp.int32(updates)), batch, KEY)[0].vae.params
        return not np.array_equal(after.encoder.head.weight, state.vae.params.encoder.head.weight)

    assert [learns(updates) for updates in range(5)] == [True, False, True, False, True]


def test_staleness_is_how_far_kept_vectors_are_from_those_of_now(state, batch):
    vae, first = state.vae, batch.frames.shape[0]
    now = jax.jit(jax.vmap(vae.params.embed))(batch.frames)
    spread = float(jnp.mean(jnp.var(now, axis=0)))
    for off in (0.0, 0.5):
        _, metrics = learn_frames(TINY.image, vae, batch.frames, now + off, FIRST, KEY)
        assert metrics["image/staleness"] == pytest.approx(off**2 / spread, rel=1e-3, abs=1e-6)
    assert first == TINY.image.batch_size


def test_the_vae_learns_from_shifted_frames_when_asked(state, batch):
    padded, vae = replace(TINY.image, pad=4), state.vae
    kept = jax.jit(jax.vmap(vae.params.embed))(batch.frames)
    moved = random_shift(batch.frames, jax.random.fold_in(KEY, 1), pad=4)
    assert not np.array_equal(moved, batch.frames)
    got, metrics = learn_frames(padded, vae, batch.frames, kept, FIRST, KEY)
    by_hand, _ = learn_frames(TINY.image, vae, moved, kept, FIRST, KEY)
    for one, other in zip(jax.tree.leaves(got.params), jax.tree.leaves(by_hand.params), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-6)
    assert metrics["image/staleness"] == pytest.approx(0.0, abs=1e-6)  # of the frames as they are


def test_the_vae_learns_alone_until_it_is_pre_trained(state, batch):
    first, metrics = UPDATE(state, batch, KEY)
    same = jax.tree.map(np.array_equal, first.mulv, state.mulv)
    assert all(jax.tree.leaves(same))
    assert metrics["train/critic_loss"] == 0
    assert not np.array_equal(first.vae.params.encoder.head.weight, state.vae.params.encoder.head.weight)
    second, metrics = UPDATE(first, batch, KEY)
    assert metrics["train/critic_loss"] > 0
    assert not np.array_equal(second.mulv.critic.params.weights, state.mulv.critic.params.weights)
    assert second.updates == 2


def test_acting_on_frames_is_acting_on_their_embeddings(state):
    frames = jnp.asarray([draw_rod(angle) for angle in (0.0, 0.4, 1.0)])
    on_vectors, memory = AGENT.on_vectors, AGENT.init_memory()

    def step(agent):
        """An observation and a decision, each after the other."""

        def seen(state, memory, a_prev, o_h, noise):
            memory = agent.observe(state, memory, a_prev, jnp.zeros(()), o_h, KEY)
            return agent.act(state, memory, noise), memory

        return jax.jit(seen)

    sees, reads = step(AGENT), step(on_vectors)
    embeddings = jax.jit(jax.vmap(state.vae.params.embed))(frames)
    vectors = on_vectors.init_memory()
    a_h, actions = jnp.zeros(AGENT.spec.act_dim), []
    for number, frame in enumerate(frames):
        noise = jax.random.normal(jax.random.key(number), (AGENT.spec.act_dim,))
        expected, vectors = reads(state.mulv, vectors, a_h, embeddings[number], noise)
        a_h, memory = sees(state, memory, a_h, frame, noise)
        np.testing.assert_allclose(a_h, expected, rtol=1e-4, atol=1e-5)
        np.testing.assert_array_equal(memory.obs[-1], frame)
        actions.append(a_h)
    assert len(np.unique(np.stack(actions))) == len(frames)


def test_what_the_decoder_says_is_read_as_the_observation_that_it_stands_for(state, batch):
    o_h, o_h1 = batch.x_h.obs[:, -1], batch.future.obs[:, 0]
    many = 0.2 * jnp.float32(np.random.default_rng(2).normal(size=(2, 64, 3)))
    moments = state.mulv.obs_moments.update(*many)  # as wide as not to cut anything off
    said = {}
    for changes, levels in ((True, True), (True, False), (False, False)):
        config = with_options(TINY, {"elbo.predict_changes": changes, "elbo.predict_levels": levels})
        said[changes] = normalise_batch(config, moments, state.mulv.reward_moments, batch).future.obs[:, 0]
        np.testing.assert_allclose(
            denormalise_prediction(config, moments, o_h, said[changes]), o_h1, atol=1e-5
        )
    mistaken = denormalise_prediction(
        with_options(TINY, {"elbo.predict_changes": True}), moments, o_h, said[False]
    )
    assert np.abs(mistaken - o_h1).max() > 1e-2


def test_pictures_are_what_was_seen_and_what_is_drawn(state, seen):
    drawn = np.asarray(jax.jit(AGENT.encoder.pictures)(state, seen))
    assert drawn.shape == (4, 4, 64, 64, 3)
    assert drawn.dtype == np.uint8
    np.testing.assert_array_equal(drawn[:, 0], seen.x_h.obs[:, -1])
    np.testing.assert_array_equal(drawn[:, 2], seen.future.obs[:, 0])
    vae = state.vae.params
    again = jax.jit(jax.vmap(lambda frame: vae.draw(vae.embed(frame))))(drawn[:, 0])
    assert np.abs(drawn[:, 1].astype(int) - np.asarray(again).astype(int)).max() <= 1


def test_the_vae_learns_to_draw_the_frame_that_it_is_shown():
    config = ImageConfig(embedding_dim=4, channels=8, batch_size=2, learning_rate=5e-3)
    frames = jnp.asarray([draw_rod(0.0), draw_rod(2.0)])

    @eqx.filter_jit
    def step(vae, key):
        return learn_frames(config, vae, frames, jnp.zeros((2, 4)), FIRST, key)[0]

    @jax.jit
    def squared_errors(vae):
        """Of what is drawn of a frame (rows), to either frame."""
        drawn = jax.vmap(lambda frame: vae.draw(vae.embed(frame)))(frames).astype(jnp.float32)
        return jnp.mean(jnp.square(drawn[:, None] - frames[None].astype(jnp.float32)), axis=(2, 3, 4))

    vae = start_training(config.optimiser, ImageVAE(config, key=KEY))
    before = squared_errors(vae.params)
    for number in range(250):
        vae = step(vae, jax.random.key(number))
    after = squared_errors(vae.params)
    own, other = jnp.diag(after), jnp.diag(after[:, ::-1])
    assert (own < 0.1 * jnp.diag(before)).all()
    assert (own < 0.5 * other).all()


def test_the_background_is_the_mean_of_what_was_pre_trained_on_and_then_stays():
    config = replace(TINY.image, centred=True, pretraining=3)
    rods = jnp.asarray([[draw_rod(angle), draw_rod(-angle)] for angle in (0.3, 1.0, 2.0, 3.0)])
    vae = start_training(config.optimiser, ImageVAE(config, key=KEY))
    step = eqx.filter_jit(lambda vae, frames, number: learn_frames(config, vae, frames, SEEN, number, KEY)[0])
    assert not vae.params.background.any()
    for number, frames in enumerate(rods):
        vae = step(vae, frames, jnp.int32(number))
    pictures = np.stack([normalise(frame) for frame in rods[:3].reshape(-1, 64, 64, 3)])
    np.testing.assert_allclose(vae.params.background, pictures.mean(0), atol=1e-5)


def test_what_is_seen_is_taken_against_the_background_and_drawn_on_it():
    plain = ImageVAE(TINY.image, key=KEY)
    behind = normalise(jnp.asarray(draw_rod(1.0)))
    vae = eqx.tree_at(lambda v: v.background, plain, behind)
    assert not np.any(vae.picture(jnp.asarray(draw_rod(1.0))))
    blank = eqx.tree_at(lambda v: v.decoder.head.kernel, vae, jnp.zeros_like(vae.decoder.head.kernel))
    np.testing.assert_array_equal(blank.draw(jnp.ones(3)), draw_rod(1.0))  # what is drawn of nothing
    frame = jnp.asarray(draw_rod(2.0))
    assert np.abs(vae.embed(frame) - plain.embed(frame)).max() > 1e-3


@pytest.mark.parametrize("size", [16, 32, 64])
def test_a_smaller_drawing_is_held_to_the_means_of_squares_by_as_many_pixels(size):
    config, frame = replace(TINY.image, drawn=size), jnp.asarray(draw_rod(2.0))
    vae = ImageVAE(config, key=KEY)
    drawn = np.asarray(vae.decoder(vae.embed(frame)))
    assert drawn.shape == (size, size, 3)
    block, picture = 64 // size, np.asarray(normalise(frame))
    expected = 0.0
    for row in range(size):
        for column in range(size):
            square = picture[row * block : (row + 1) * block, column * block : (column + 1) * block]
            expected += 0.5 * block**2 * np.square(square.mean((0, 1)) - drawn[row, column]).sum()
    got = frame_elbo_terms(vae, frame, jnp.zeros(3)).error  # no noise: the decoder sees the embedding itself
    assert float(got) == pytest.approx(expected, rel=1e-4)


def test_a_smaller_drawing_is_shown_at_full_size_on_the_background():
    vae = ImageVAE(replace(TINY.image, drawn=32), key=KEY)
    bias = jnp.array([-9.0, 0.0, 9.0])  # red as dark as can be, blue as bright
    vae = eqx.tree_at(
        lambda v: (v.decoder.head.kernel, v.decoder.head.bias), vae, (0 * vae.decoder.head.kernel, bias)
    )
    vae = eqx.tree_at(lambda v: v.background, vae, normalise(jnp.asarray(draw_rod(1.0))))
    shown = np.asarray(vae.draw(jnp.ones(3)))
    assert shown.shape == (64, 64, 3)
    assert not shown[..., 0].any()
    np.testing.assert_array_equal(shown[..., 1], draw_rod(1.0)[..., 1])
    assert (shown[..., 2] == 255).all()


@pytest.mark.parametrize(
    ("config", "spec", "message"),
    [
        (TINY, replace(SPEC, obs_shape=(84, 84, 3)), r"\(84, 84, 3\)"),
        (TINY, replace(SPEC, obs_dtype="float32"), "float32"),
        (replace(TINY, image=ImageConfig(batch_size=5)), SPEC, "image.batch_size is 5"),
    ],
)
def test_what_cannot_be_learned_from_is_said(config, spec, message):
    with pytest.raises(MulvError, match=message):
        algorithm("mulv").agent(config, spec)


@pytest.mark.parametrize(
    "field", ["embedding_dim", "channels", "batch_size", "every", "refreshed", "learning_rate"]
)
def test_a_setting_of_the_vae_out_of_range_is_named(field):
    with pytest.raises(MulvError, match=f"image.{field} is 0"):
        ImageConfig(**{field: 0})


def test_a_size_that_cannot_be_drawn_is_named():
    with pytest.raises(MulvError, match=r"image\.drawn is 48; it must be one of 16, 32, 64"):
        ImageConfig(drawn=48)


def test_what_a_task_shows_decides_which_agent_learns_it():
    for name in ("default", "paper", "paper-code"):
        assert isinstance(algorithm("mulv").agent(PRESETS[name], SPEC), PixelMuLV)
        assert isinstance(algorithm("mulv").agent(PRESETS[name], EnvSpec((3,), 1)), MuLV)
