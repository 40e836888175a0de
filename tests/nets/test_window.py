"""A GRU over the window: against a loop, and padding counts for nothing."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mulv.core.normalise import ObsMoments, RunningMoments
from mulv.core.types import Window
from mulv.nets.trunk import flatten_window
from mulv.nets.window import WindowGRU

KEY = jax.random.key(0)
OBS, ACT, UNITS, DIRECT = 3, 2, 5, 2


def window(length: int, padding: int, seed: int = 0) -> Window:
    rng = np.random.default_rng(seed)
    mask = np.arange(length) >= padding
    obs = rng.normal(size=(length, OBS)).astype(np.float32) * mask[:, None]
    actions = rng.normal(size=(length - 1, ACT)).astype(np.float32) * mask[:-1, None]
    return Window(obs, actions, mask, np.zeros(length, np.float32))


@pytest.mark.parametrize("padding", [0, 2])
def test_the_state_is_that_of_a_loop_over_the_real_steps(padding):
    reader, x = WindowGRU(OBS, ACT, UNITS, DIRECT, key=KEY), window(6, padding)
    h = jnp.zeros(UNITS)
    for k in range(padding, 6):
        before = x.actions[k - 1] if k > 0 else np.zeros(ACT, np.float32)
        h = reader.cell(jnp.concatenate([x.obs[k], before]), h)
    read = reader(x)
    assert read.shape == (WindowGRU.out_dim(OBS, ACT, UNITS, DIRECT),)
    np.testing.assert_allclose(read[-UNITS:], h, rtol=1e-5, atol=1e-6)
    newest = Window(x.obs[-2:], x.actions[-1:], x.mask[-2:], x.rewards[-2:])
    np.testing.assert_array_equal(read[:-UNITS], flatten_window(newest))


def test_longer_padding_changes_nothing():
    reader, short = WindowGRU(OBS, ACT, UNITS, DIRECT, key=KEY), window(4, 0)
    longer = Window(
        np.concatenate([np.zeros((3, OBS), np.float32), short.obs]),
        np.concatenate([np.zeros((3, ACT), np.float32), short.actions]),
        np.concatenate([np.zeros(3, bool), short.mask]),
        np.zeros(7, np.float32),
    )
    np.testing.assert_allclose(reader(longer), reader(short), rtol=1e-6)


def test_the_oldest_step_is_remembered_and_its_order_counts():
    reader, x = WindowGRU(OBS, ACT, UNITS, 1, key=KEY), window(6, 0)
    other = x._replace(obs=np.concatenate([x.obs[:1] + 1, x.obs[1:]]))
    swapped = x._replace(obs=x.obs[[1, 0, 2, 3, 4, 5]])
    for changed in (other, swapped):
        assert np.abs(reader(changed) - reader(x)).max() > 1e-4


def test_levels_and_changes_are_those_written_out():
    rng, x = np.random.default_rng(1), window(4, 1)
    data = (2 + rng.normal(size=(500, OBS))).astype(np.float32)
    moments = ObsMoments(RunningMoments((OBS,)), RunningMoments((OBS,))).update(data[:-1], data[1:])
    seen = np.asarray(moments.levels_and_changes(x).obs)
    for k in range(4):
        real = k >= 1
        level = moments.level.whiten(x.obs[k]) if real else np.zeros(OBS)
        moved = moments.change.scale(x.obs[k] - x.obs[k - 1]) if k >= 2 else np.zeros(OBS)
        np.testing.assert_allclose(seen[k], np.concatenate([level, moved]), rtol=1e-5, atol=1e-6)
