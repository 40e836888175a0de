"""What the decoder is to say of a step beside the observation: the episode's end, the next window's code."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mulv.agents.mulv.normalisation import following_windows, with_codes
from mulv.agents.mulv.representation import decoded_dim
from mulv.core.options import with_options
from mulv.core.types import Future, Window
from tests.agents.support import KEY, VECTORS, initial, random_batches, run, same, tiny, trained_parts


def batch_of(agent):
    return jax.tree.map(lambda leaf: jnp.asarray(leaf[0]), random_batches(agent, 1))


def test_an_end_is_the_root_of_its_weight_where_the_episode_terminates_and_zero_elsewhere():
    agent = tiny("mulv", **{"elbo.end_weight": 9.0, "elbo.future": 2})
    batch = batch_of(agent)
    assert 0 < np.mean(batch.future.terminated) < 1
    said = agent.normalise(initial(agent, KEY), batch).future.obs
    assert said.shape[-1] == VECTORS.obs_dim + 1
    np.testing.assert_array_equal(said[..., -1], 3.0 * np.asarray(batch.future.terminated))


def test_ends_are_learned():
    """An end that the window tells is predicted; the same ends, shuffled, are not."""
    agent = tiny("mulv", **{"elbo.end_weight": 10.0, "elbo.future": 1, "learning_rate": 3e-3})
    errors = {}
    for told in (True, False):
        batches = random_batches(agent, 200)
        ends = batches.x_h.obs[..., -1, 0] > 2.0
        if not told:
            ends = np.random.default_rng(1).permutation(ends.ravel()).reshape(ends.shape)
        batches = batches._replace(future=batches.future._replace(terminated=ends[..., None]))
        state = run(agent, initial(agent, KEY), batches)[0]
        seen = agent.normalise(state, jax.tree.map(lambda leaf: jnp.asarray(leaf[-1]), batches))
        model = state.representation.params
        p = jax.vmap(model.p)(jax.vmap(model.encode)(seen.x_h), seen.a_h)[0]
        obs, _ = jax.vmap(model.predict)(p.mean, seen.future.actions)
        wanted = seen.future.obs[..., -1]
        errors[told] = float(jnp.mean((obs[..., -1] - wanted) ** 2) / jnp.var(wanted))
    assert errors[True] < 0.5 < 0.9 < errors[False]


def test_the_decoder_says_as_many_numbers_as_asked_for():
    for options, more in (({}, 0), ({"elbo.end_weight": 1.0}, 1), ({"elbo.code_weight": 1.0}, 16)):
        config = tiny("mulv", **{"trunk.width": 16, **options}).config
        assert decoded_dim(VECTORS, config) == VECTORS.obs_dim + more
        levels = with_options(config, {"elbo.predict_levels": True})
        assert decoded_dim(VECTORS, levels) == 2 * VECTORS.obs_dim + more


def test_following_windows_are_those_that_an_episode_makes():
    """The window cut at h, moved on by the rows that follow, is the one cut at h+1, then at h+2."""
    rng = np.random.default_rng(0)
    obs, actions, rewards = rng.normal(size=(9, 3)), rng.normal(size=(8, 2)), rng.normal(size=9)

    def cut(h: int) -> Window:
        rows = slice(h - 3, h + 1)
        return Window(obs[rows], actions[h - 3 : h], np.ones(4, bool), rewards[rows])

    h = 4
    future = Future(
        actions[h : h + 2], rewards[h + 1 : h + 3], obs[h + 1 : h + 3], np.ones(2, bool), np.zeros(2, bool)
    )
    got = following_windows(*jax.tree.map(lambda leaf: jnp.asarray(leaf)[None], (cut(h), future)))
    for ahead in (1, 2):
        one = jax.tree.map(lambda leaf, ahead=ahead: leaf[0, ahead - 1], got)
        jax.tree.map(lambda g, w: np.testing.assert_allclose(g, w, rtol=1e-6), one, cut(h + ahead))


def test_a_code_counts_as_much_as_its_weight_in_entries_and_padding_for_nothing():
    agent = tiny("mulv", **{"elbo.code_weight": 5.0, "elbo.future": 2})
    batch = batch_of(agent)
    codes = 3.0 + 2.0 * jax.random.normal(KEY, (*batch.future.mask.shape, 16))
    said = with_codes(agent.config, batch, codes).future.obs[..., VECTORS.obs_dim :]
    squares = np.sum(np.square(said), axis=-1)
    real = np.asarray(batch.future.mask)
    assert 0 < real.mean() < 1
    np.testing.assert_allclose(squares[real], 5.0, rtol=1e-3)
    assert not squares[~real].any()


@pytest.mark.parametrize("weight", [0.0, 5.0])
def test_the_code_is_that_of_the_target_encoder(weight):
    """Moving the target encoder moves what is learned, where codes are decoded, and only there."""
    agent = tiny("mulv", **{"elbo.code_weight": weight, "critic.trains_representation": False})
    batches, state = random_batches(agent, 1), initial(agent, KEY)
    moved = eqx.tree_at(
        lambda r: r.encoder.layers[0].weight,
        state.target_representation,
        replace_fn=lambda weight: weight + 0.1,
    )
    other = state._replace(target_representation=moved)
    one, two = (trained_parts(run(agent, s, batches)[0])["representation"] for s in (state, other))
    assert same(one, two) == (weight == 0)
