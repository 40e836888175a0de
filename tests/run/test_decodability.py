"""How long a memory is found to be needed, on processes where the answer is known."""

from collections.abc import Iterator
from contextlib import closing

import numpy as np
import pytest

from mulv.core.errors import MulvError
from mulv.envs import VectorEnv, make_env
from mulv.envs.hidden_names import hidden_names
from mulv.run import seeding
from mulv.run.diagnostics.decodability.collect import ENVS, Sequences, collect, uniform_actions
from mulv.run.diagnostics.decodability.measure import Measurement, measure
from mulv.run.diagnostics.decodability.recommend import DECODED, recommend, sentences
from mulv.run.diagnostics.decodability.scores import Estimate, Score, score
from mulv.run.diagnostics.decodability.windows import AGE_POWER, held_out, scales, window_inputs
from mulv.run.seeding import Stream
from tests.run.support import small_regressions

EPISODE = 25


@pytest.fixture(autouse=True, scope="module")
def small() -> Iterator[None]:
    with small_regressions():
        yield


def process(hidden_of: str, sequences: int = 40, episodes: int = 3) -> Sequences:
    """White observations and actions; what is hidden is a function of the past of its own episode."""
    rng = np.random.default_rng(0)
    shape = (sequences, episodes, EPISODE)
    obs = rng.normal(size=(*shape, 1))
    actions, rewards = rng.uniform(-1, 1, (*shape, 1)), rng.normal(size=shape)
    actions[:, :, 0], rewards[:, :, 0] = 0, 0
    if hidden_of == "last three":
        past = np.concatenate([np.zeros((sequences, episodes, 2, 1)), obs], axis=2)
        hidden = past[:, :, 2:] - past[:, :, 1:-1] + 2 * past[:, :, :-2]
    else:  # all of them: a walk, of which a window shows only how far it went lately
        hidden = np.cumsum(obs, axis=2) * (1 + np.arange(EPISODE)[:, None]) ** 0.5
    step = np.broadcast_to(np.arange(EPISODE), shape)
    columns = (obs, actions, rewards, hidden, step)
    return Sequences(*(c.reshape(sequences, episodes * EPISODE, *c.shape[3:]) for c in columns))


@pytest.fixture(scope="module")
def last_three() -> Measurement:
    return measure(
        process("last three", sequences=60), ["hidden 0"], windows=(2, 3, 5), updates=500, gru=False
    )


@pytest.fixture(scope="module")
def walk() -> Measurement:
    return measure(process("all"), ["walk"], windows=(1, 2), updates=1000, gru=True)


def test_a_function_of_three_observations_is_read_from_three_and_not_from_two(last_three: Measurement):
    r2 = {L: score.mean.r2 for L, score in last_three.windows.items()}
    assert r2[2] < 0.6
    assert r2[3] > 0.97
    assert r2[5] > 0.95


def test_the_shortest_window_that_reads_all_is_recommended(last_three: Measurement):
    advice = recommend(last_three)
    assert advice.window == 3
    assert advice.decodable
    assert sentences(last_three, advice)[0].startswith("recommended: a window of 3")


def test_what_takes_all_history_is_not_decodable_from_windows(walk: Measurement):
    advice = recommend(walk)
    assert not advice.decodable
    assert advice.unread.keys() == {"walk"}
    assert any("not decodable by windows up to 2" in line for line in sentences(walk, advice))


def test_a_gru_reads_what_takes_all_history_and_is_recommended(walk: Measurement):
    assert walk.gru is not None
    assert walk.gru.mean.r2 > walk.windows[2].mean.r2 + 0.1
    advice = recommend(walk)
    assert advice.window is None
    assert "a recurrent memory" in sentences(walk, advice)[0]


def test_pendulum_needs_two_observations():
    make, rng = (lambda: make_env("Pendulum-P")), uniform_actions(0)
    with closing(VectorEnv.of(make, ENVS, lambda *at: seeding.integer(0, Stream.ENV, *at))) as envs:
        sequences = collect(envs, rng, 3_000)
    found = measure(sequences, ["speed"], windows=(1, 2, 3), updates=500, gru=False)
    assert found.windows[1].mean.r2 < 0.5
    assert found.windows[2].mean.r2 > 0.97
    assert recommend(found).window == 2


def test_constant_entries_and_rewards_are_left_out_by_name_and_give_no_nan():
    varied = process("last three", sequences=10, episodes=2)
    constant = np.full_like(varied.hidden, 3.0)
    sequences = varied._replace(
        hidden=np.concatenate([constant, varied.hidden], axis=-1), rewards=np.ones_like(varied.rewards)
    )
    found = measure(sequences, ["still", "moves"], windows=(1, 3), updates=50, gru=False)
    assert found.names == ("moves",)
    assert found.constant == ("still",)
    for each in found.windows.values():
        assert each.reward is None
        assert np.isfinite([*each.mean, *each.worst, *each.entries[0]]).all()
    assert any("still" in line for line in sentences(found, recommend(found)))
    with pytest.raises(MulvError, match="ever varies"):
        measure(sequences._replace(hidden=constant), ["still"], windows=(1,), updates=50, gru=False)


def test_no_episode_is_both_fitted_and_tested():
    sequences = process("last three", sequences=20)
    test = held_out(sequences)
    assert 0 < test.sum() < len(test)
    assert not {*sequences.episode[test].ravel()} & {*sequences.episode[~test].ravel()}
    assert sequences.episode.max() + 1 == 20 * 3


@pytest.mark.parametrize("L", [1, 2, 3, 8, 40])
def test_windows_show_what_a_list_of_the_episode_shows_and_nothing_before_it(L: int):
    sequences = process("last three", sequences=2)
    by = scales(sequences)
    inputs = window_inputs(sequences, by, L)
    for (b, t), step in np.ndenumerate(sequences.step):
        expected = [(sequences.obs[b, t] - by.mean) / by.obs]
        for back in range(L - 1):
            inside = step - back >= 1
            newer, older = (sequences.obs[b, t - back - k] if inside else np.zeros(1) for k in (0, 1))
            action = sequences.actions[b, t - back] if inside else np.zeros(1)
            weight = (1 + back) ** -AGE_POWER
            expected += [weight * (newer - older) / by.change, weight * action, [weight * inside]]
        np.testing.assert_allclose(inputs[b, t], np.concatenate(expected), rtol=1e-4, atol=1e-5)


def test_an_episode_that_ends_within_a_sequence_is_followed_by_one_that_begins():
    make = lambda: make_env("Hopper-P")  # noqa: E731
    with closing(VectorEnv.of(make, ENVS, lambda *at: seeding.integer(0, Stream.ENV, *at))) as envs:
        sequences = collect(envs, uniform_actions(0), 2_000)
        names = hidden_names(make())
    begins = sequences.step == 0
    assert begins.sum() > len(begins)  # a hopper falls over soon
    assert (sequences.step[:, 1:] == np.where(begins[:, 1:], 0, sequences.step[:, :-1] + 1)).all()
    assert (sequences.actions[begins] == 0).all()
    assert (sequences.rewards[begins] == 0).all()
    assert (np.abs(sequences.hidden[begins]) <= 0.0051).all()  # its speeds at a reset
    assert names[0] == "qvel[0] rootx"
    assert len(names) == sequences.hidden.shape[-1]


def test_hidden_entries_of_dm_control_are_named_by_their_joints():
    with closing(make_env("cheetah-run-P")) as env:
        assert hidden_names(env)[:2] == ["velocity[0] rootx", "velocity[1] rootz"]
    with closing(make_env("Pendulum-P")) as env:
        assert hidden_names(env) == ["hidden 0"]
    with closing(make_env("HalfCheetah-F")) as env:
        assert hidden_names(env) == []


def test_r_squared_is_one_zero_or_between_and_its_interval_holds_it():
    rng = np.random.default_rng(0)
    y, episode = rng.normal(size=(1000, 3)), np.repeat(np.arange(20), 50)
    noisy = y + 0.5 * rng.normal(size=y.shape)
    predicted = np.stack([y[:, 0], np.full(1000, y[:, 1].mean()), noisy[:, 2]], axis=1)
    found = score(y, predicted, episode, 2, np.random.default_rng(1))
    assert found.entries[0].r2 == pytest.approx(1)
    assert found.entries[1].r2 == pytest.approx(0, abs=1e-9)
    assert found.mean.r2 == pytest.approx(0.5)
    assert found.worst_entry == 1
    assert found.reward is not None
    assert found.reward.r2 == pytest.approx(1 - 0.25 / y[:, 2].var(), abs=0.03)
    assert found.reward.low < found.reward.r2 < found.reward.high


def _score(*entries: float) -> Score:
    each = tuple(Estimate(value, value, value) for value in entries)
    mean, worst = float(np.mean(entries)), min(entries)
    return Score(each, Estimate(mean, mean, mean), Estimate(worst, worst, worst), None)


def _found(windows: dict[int, Score], gru: Score | None) -> Measurement:
    entries = len(next(iter(windows.values())).entries)
    names = ("slow", *(f"fast {i}" for i in range(1, entries)))
    return Measurement(names, (), windows, gru, fitted_rows=1, tested_rows=1, tested_episodes=1)


def test_the_entry_that_asks_for_a_longer_window_is_named():
    fast = [0.99] * 9
    windows = {2: _score(0.80, *fast), 8: _score(0.92, *fast)}
    advice = recommend(_found(windows, _score(0.93, *fast)))
    assert (advice.window, advice.by_mean, advice.reason) == (8, 2, "slow")
    assert advice.decodable


def test_what_only_a_gru_reads_is_said():
    fast = [0.99] * 9
    found = _found({2: _score(0.5, *fast), 8: _score(0.6, *fast)}, _score(0.95, *fast))
    advice = recommend(found)
    assert advice.window is None
    assert advice.unread == {"slow": 0.6}
    assert advice.gru_gain is not None
    assert advice.gru_gain["worst"] == pytest.approx(0.35)
    lines = "\n".join(sentences(found, advice))
    assert f"R² stays below {DECODED:g} for slow (0.60)" in lines
    assert "a GRU adds: " in lines


def test_a_long_window_that_is_read_worse_than_a_short_one_is_put_down_to_the_data():
    worse = _found({2: _score(0.8), 8: _score(0.7)}, None)
    assert any("more --decisions help" in line for line in sentences(worse, recommend(worse)))
    better = _found({2: _score(0.7), 8: _score(0.8)}, None)
    assert not any("more --decisions help" in line for line in sentences(better, recommend(better)))
