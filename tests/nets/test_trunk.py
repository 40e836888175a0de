"""The shared bodies of networks against NumPy."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mulv.core.types import Window
from mulv.nets.trunk import (
    Join,
    LayerNorm,
    Linear,
    ResidualBlock,
    Trunk,
    TrunkConfig,
    flat_window_dim,
    flatten_window,
)

KEY = jax.random.key(0)


def random(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).normal(size=shape).astype(np.float32)


def test_linear_is_a_matrix_product_and_a_bias():
    linear = eqx.tree_at(lambda m: m.bias, Linear(5, 3, key=KEY), jnp.arange(3.0))
    x = random(5)
    expected = x @ np.asarray(linear.weight) + np.arange(3.0)
    np.testing.assert_allclose(linear(jnp.asarray(x)), expected, rtol=1e-5, atol=1e-6)


def test_linear_starts_with_unit_gain_times_its_scale():
    weight = np.asarray(Linear(400, 300, key=KEY, scale=3.0).weight)
    assert weight.std() == pytest.approx(3.0 / 400**0.5, rel=0.02)


def test_layer_norm_gives_zero_mean_and_unit_variance():
    y = np.asarray(LayerNorm(64)(jnp.asarray(7.0 + 3.0 * random(64))))
    assert y.mean() == pytest.approx(0.0, abs=1e-5)
    assert y.std() == pytest.approx(1.0, abs=1e-4)


def test_layer_norm_then_scales_and_shifts():
    plain, x = LayerNorm(6), jnp.asarray(random(6))
    scaled = eqx.tree_at(lambda m: (m.scale, m.shift), plain, (jnp.full(6, 2.0), jnp.full(6, -1.0)))
    np.testing.assert_allclose(scaled(x), 2.0 * plain(x) - 1.0, rtol=1e-6)


@pytest.mark.parametrize("depth", [1, 3])
@pytest.mark.parametrize("kind", ["mlp", "layernorm", "residual"])
def test_every_trunk_gives_width_features(kind, depth):
    trunk = Trunk(5, TrunkConfig(kind, width=12, depth=depth), key=KEY)
    assert trunk(jnp.asarray(random(5))).shape == (12,)


@pytest.mark.parametrize("kind", ["mlp", "layernorm", "residual"])
def test_depth_is_the_number_of_layers_or_blocks(kind):
    trunk = Trunk(5, TrunkConfig(kind, width=12, depth=3), key=KEY)
    assert (
        sum(isinstance(layer, ResidualBlock if kind == "residual" else Linear) for layer in trunk.layers) == 3
    )


def test_layer_norm_trunk_ignores_the_scale_of_its_input():
    trunk, x = Trunk(5, TrunkConfig("layernorm", 12, 2), key=KEY), jnp.asarray(random(5))
    np.testing.assert_allclose(trunk(x), trunk(100.0 * x), atol=1e-3)


def test_residual_trunk_without_its_blocks_is_the_normalised_embedding():
    trunk, x = Trunk(5, TrunkConfig("residual", 12, 2), key=KEY), jnp.asarray(random(5))

    def projections(t: Trunk) -> list:
        return [block.project.weight for block in t.layers[1:-1]]

    emptied = eqx.tree_at(projections, trunk, [jnp.zeros((12, 12))] * 2)
    embedding = trunk.layers[0]
    np.testing.assert_allclose(emptied(x), LayerNorm(12)(embedding(x)), rtol=1e-6)
    assert not np.allclose(trunk(x), emptied(x), atol=1e-2)


def make_window(length: int, mask: list[bool]) -> Window:
    rng = np.random.default_rng(1)
    obs = jnp.float32(rng.normal(size=(length, 3)))
    return Window(obs, jnp.zeros((length - 1, 2)), jnp.array(mask), jnp.zeros(length))


@pytest.mark.parametrize("length", [1, 2, 5])
def test_a_flat_window_has_the_announced_length(length):
    assert flatten_window(make_window(length, [True] * length)).shape == (flat_window_dim(3, 2, length),)


@pytest.mark.parametrize("length", [1, 2, 5])
def test_a_flat_window_loses_nothing(length):
    x = make_window(length, [True] * length)
    flat = np.asarray(flatten_window(x))
    np.testing.assert_array_equal(flat[: 3 * length], np.ravel(x.obs))
    np.testing.assert_array_equal(flat[3 * length : -length], np.ravel(x.actions))
    np.testing.assert_array_equal(flat[-length:], np.ones(length))


def test_padding_is_told_from_zero_observations():
    zeros = make_window(2, [True, True])._replace(obs=jnp.zeros((2, 3)))
    padded = zeros._replace(mask=jnp.array([False, True]))
    assert not np.array_equal(flatten_window(zeros), flatten_window(padded))


@pytest.mark.parametrize("kind", ["mlp", "layernorm"])
def test_a_join_is_a_layer_on_the_sum_of_two_products(kind):
    join = Join(5, 3, TrunkConfig(kind, 8, 2, "elu"), key=KEY)
    x, y = random(5), random(3)
    total = x @ np.asarray(join.first.weight) + y @ np.asarray(join.second.weight)
    if kind == "layernorm":
        total = (total - total.mean()) / np.sqrt(total.var() + 1e-5)
    expected = np.where(total > 0, total, np.expm1(total))
    np.testing.assert_allclose(join(jnp.asarray(x), jnp.asarray(y)), expected, rtol=1e-4, atol=1e-5)


def test_a_join_hears_two_numbers_as_well_as_two_hundred():
    x, y = jnp.asarray(random(200)), jnp.ones(2)
    join = Join(200, 2, TrunkConfig("mlp", 4096), key=KEY)
    parts = [np.asarray(join.first(x)).var(), np.asarray(join.second(y)).var()]
    assert parts[1] / parts[0] == pytest.approx(1.0, rel=0.3)
    concatenated = np.asarray(Linear(202, 4096, key=KEY).weight)
    heard = (np.asarray(y) @ concatenated[200:]).var() / (np.asarray(x) @ concatenated[:200]).var()
    assert heard < 0.05
