"""What the tests of learners share: locks in tables, and datasets without noise."""

import jax.numpy as jnp
import numpy as np

from mulv.tabular.learner.collect import WindowData
from mulv.tabular.learner.tables import WindowTables, window_tables
from mulv.tabular.policies import uniform_policy
from mulv.tabular.precision import in_float64
from mulv.tabular.windows import Histories, enumerate_histories, history_occupancy
from mulv.tabular.zoo import make


def lock_tables(H: int, L: int, actions: int, window: int | None = None) -> WindowTables:
    return window_tables(enumerate_histories(make("lock", H=H, L=L, actions=actions), window or L, H))


@in_float64
def infinite_data(histories: Histories, tables: WindowTables, episodes: float = 1e6) -> WindowData:
    """The expected dataset of so many episodes of uniform actions."""
    counts = np.zeros(tables.next_window.shape)
    occupancy = history_occupancy(histories, uniform_policy(histories))
    for h, (layer, d) in enumerate(zip(histories.layers, occupancy, strict=True)):
        n = len(layer.window)
        seen = np.asarray(tables.probability[h, :n]) * d[:, None, None] / tables.actions
        np.add.at(counts[h], layer.window, episodes * seen)
    return WindowData(jnp.asarray(counts.sum(axis=3)), jnp.asarray(counts))
