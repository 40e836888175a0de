"""A GRU that reads the window for µLV-Rep."""

import jax

from mulv.agents.mulv.agent import MuLV
from mulv.agents.mulv.config import MuLVConfig
from mulv.core.options import with_options
from mulv.core.spec import EnvSpec
from mulv.nets.trunk import TrunkConfig
from tests.agents.support import initial, random_batches, run, same

SPEC, KEY = EnvSpec((3,), 2), jax.random.key(0)
SMALL = with_options(
    MuLVConfig(batch_size=8, trunk=TrunkConfig("mlp", 16, 2)), {"latent.dim": 4, "critic.features": 16}
)


def test_a_gru_over_the_window_learns_with_the_rest_and_is_absent_unless_asked_for():
    config = with_options(SMALL, {"window": 4, "recurrence.units": 8})
    agent = MuLV(config, SPEC)
    before = initial(agent, KEY)
    after, _, finite = run(agent, before, random_batches(agent, 2))
    assert finite
    assert not same(before.representation.params.recurrence, after.representation.params.recurrence)
    assert initial(MuLV(SMALL, SPEC), KEY).representation.params.recurrence is None
