"""Algorithm 1's data: L uniform actions from a random step of each episode, and the policy's elsewhere."""

from pathlib import Path

import jax.numpy as jnp
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import mulv.run.loop as loop
from mulv.run.roll_in import RollIn
from mulv.run.train import train
from tests.run.support import tiny


@given(st.integers(1, 5), st.integers(1, 12), st.integers(0, 2**20))
def test_each_episode_has_one_stretch_of_l_uniform_actions_that_begins_within_the_horizon(
    length, horizon, seed
):
    roll_in = RollIn(1, length, np.random.default_rng(seed))
    for _ in range(3):
        uniform = [bool(roll_in.uniform(np.array([t == 0]), horizon)[0]) for t in range(horizon + length)]
        begin = uniform.index(True)
        assert begin < horizon
        assert uniform == [begin <= t < begin + length for t in range(horizon + length)]


def test_every_step_is_equally_likely_to_be_the_first_and_lanes_draw_their_own():
    roll_in, lanes, horizon = RollIn(4000, 1, np.random.default_rng(0)), 4000, 5
    uniform = np.array([roll_in.uniform(np.full(lanes, t == 0), horizon) for t in range(horizon)])
    np.testing.assert_allclose(uniform.mean(axis=1), 1 / horizon, atol=0.03)


def test_a_run_takes_the_policys_actions_but_for_the_stretch(tmp_path: Path, monkeypatch) -> None:
    """The policy is made to say 0.5 always, so that what was uniform shows in the replay."""
    act = loop.compiled.act

    def constant(*arguments, **options):
        remembered.append(float(arguments[2].action[0, 0]))
        carry = act(*arguments, **options)
        return carry._replace(action=jnp.full_like(carry.action, 0.5))

    remembered: list[float] = []
    monkeypatch.setattr(loop.compiled, "act", constant)
    steps, starts = 1000, 200
    config = tiny(total_steps=steps, learning_starts=starts, eval_every=0, collect="paper", replay_ratio=1e-6)
    train(config, tmp_path / "run", progress=False)
    replay = tmp_path / "run" / "replay"
    action, step = np.fromfile(replay / "action.bin", np.float32), np.fromfile(replay / "step.bin", np.int32)
    episodes = steps // 200
    taken = action[: episodes * 201].reshape(episodes, 201)[1:, 1:]  # after the warm-up
    assert (step[: episodes * 201].reshape(episodes, 201) == np.arange(201)).all()
    for row in taken:
        uniform = np.flatnonzero(row != 0.5)
        assert 1 <= uniform.size <= config.agent.window  # fewer where the episode ended first
        assert (np.diff(uniform) == 1).all()
    assert len({int(np.flatnonzero(row != 0.5)[0]) for row in taken}) > 1
    # What was done is what is remembered: each decision is told the one before it.
    done = np.where(np.arange(200) == 199, np.nan, taken).ravel()[:-1]
    told = np.asarray(remembered[1:], np.float32)
    np.testing.assert_array_equal(told[~np.isnan(done)], done[~np.isnan(done)])
