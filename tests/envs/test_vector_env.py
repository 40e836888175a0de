"""VectorEnv over a counting environment: rows differ, so a transition across a reset would show."""

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from mulv.core.errors import MulvError
from mulv.core.spec import Step
from mulv.envs import VectorEnv, adapt

UNIT = spaces.Box(-1.0, 1.0, (2,), np.float32)
ANY = spaces.Box(-np.inf, np.inf, (2,), np.float32)
MODES = list(AutoresetMode)


class Counting(gym.Env):
    """Observations are (episode, step); rewards are the step; lengths 1 to 4, ends alternate by episode."""

    observation_space, action_space = ANY, UNIT

    def __init__(self):
        self.episode, self.count, self.seeds, self.actions = -1, 0, [], []

    @staticmethod
    def length(episode: int) -> int:
        return episode % 4 + 1

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.seeds.append(seed)
        self.episode, self.count = self.episode + 1, 0
        return self._obs(), {}

    def step(self, action):
        self.actions.append(action)
        self.count += 1
        ended = self.count == self.length(self.episode)
        even = self.episode % 2 == 0
        return self._obs(), float(self.count), ended and even, ended and not even, self._info()

    def _obs(self):
        return np.array([self.episode, self.count], np.float32)

    def _info(self):
        return {}


class LateStart(Counting):
    """Its episodes begin at another number, so that lanes end at different times."""

    def __init__(self):
        super().__init__()
        self.episode = 1


class Succeeding(Counting):
    """Success at the first step of every second episode, and not after it."""

    def _info(self):
        return {"success": self.episode % 2 == 1 and self.count == 1}


def episode_seed(lane: int, episode: int) -> int:
    return 100 * lane + episode


def lanes_of(*makes, mode=AutoresetMode.DISABLED, timeout=60.0) -> VectorEnv:
    return VectorEnv(SyncVectorEnv(list(makes), autoreset_mode=mode), episode_seed, timeout)


def collect(lanes: VectorEnv, steps: int) -> list[list[Step]]:
    """Each lane's rows, one at a time, in the order in which the replay would append them."""
    blocks = [lanes.start()]
    for i in range(steps):
        blocks += lanes.step(np.full((lanes.num_envs, 2), 0.01 * (i + 1), np.float32))
    per_lane: list[list[Step]] = [[] for _ in range(lanes.num_envs)]
    for block in blocks:
        for row, lane in enumerate(block.lane):
            per_lane[lane].append(Step(*(column[row] for column in block)))
    return per_lane


@pytest.fixture(params=MODES, ids=lambda mode: mode.name)
def lanes(request):
    """Two lanes of unequal episodes under each of Gymnasium's ways to reset."""
    return lanes_of(Counting, LateStart, mode=request.param)


def test_rows_count_each_episode_from_its_reset_to_its_true_end(lanes):
    """(episode, step) of consecutive rows: the next step, or another episode's reset right after an end."""
    for lane, rows in enumerate(collect(lanes, 30)):
        expected = [
            (episode, step) for episode in range(2 * lane, 40) for step in range(Counting.length(episode) + 1)
        ]
        assert [tuple(row.obs) for row in rows] == expected[: len(rows)]
        assert [row.step for row in rows] == [step for _, step in expected[: len(rows)]]


def test_only_the_last_row_of_an_episode_ends_it_and_in_its_own_way(lanes):
    for rows in collect(lanes, 30):
        for row in rows:
            episode, step = map(int, row.obs)
            last = step == Counting.length(episode)
            assert (row.terminated, row.truncated) == (last and episode % 2 == 0, last and episode % 2 == 1)
            assert row.ended == last


def test_rows_hold_the_action_and_reward_that_led_to_them(lanes):
    for lane, rows in enumerate(collect(lanes, 30)):
        received = [action[0] for action in lanes.env.envs[lane].unwrapped.actions]
        acted = [row for row in rows if row.step > 0]
        np.testing.assert_array_equal([row.action[0] for row in acted], received)
        assert [row.reward for row in acted] == [row.step for row in acted]


def test_reset_rows_have_neither_action_nor_reward(lanes):
    for rows in collect(lanes, 30):
        resets = [row for row in rows if row.step == 0]
        assert len(resets) > 3
        assert all(row.reward == 0.0 and not row.action.any() for row in resets)


def test_the_present_observation_is_that_of_the_newest_row(lanes):
    lanes.start()
    for _ in range(30):
        blocks = lanes.step(np.zeros((2, 2), np.float32))
        newest = {lane: (block, j) for block in blocks for j, lane in enumerate(block.lane)}
        assert set(newest) == {0, 1}
        for lane, (block, j) in newest.items():
            np.testing.assert_array_equal(lanes.obs[lane], block.obs[j])
            assert lanes.first[lane] == (block.step[j] == 0)


def test_finished_episodes_have_their_returns_and_lengths(lanes):
    rows = collect(lanes, 30)
    for lane in range(2):
        ended = [int(row.obs[0]) for row in rows[lane] if row.ended]
        lengths = [Counting.length(episode) for episode in ended]
        mine = [episode for episode in lanes.finished if episode.lane == lane]
        assert [episode.length for episode in mine] == lengths
        assert [episode.ret for episode in mine] == [n * (n + 1) / 2 for n in lengths]
        assert all(episode.success is None for episode in mine)


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.name)
def test_success_at_any_step_is_success(mode):
    lanes = lanes_of(Succeeding, mode=mode)
    rows = collect(lanes, 30)[0]
    ended = [int(row.obs[0]) for row in rows if row.ended]
    assert [episode.success for episode in lanes.finished] == [episode % 2 == 1 for episode in ended]


def test_every_episode_is_seeded_by_its_number():
    lanes = lanes_of(Counting, LateStart)
    collect(lanes, 30)
    for lane in range(2):
        seeds = lanes.env.envs[lane].unwrapped.seeds
        assert seeds == [episode_seed(lane, n) for n in range(lanes.episodes_begun[lane])]


# ---------------------------------------------------------------------------------------------------- adapt


def with_spaces(observation: spaces.Space = ANY, action: spaces.Space = UNIT) -> gym.Env:
    env = Counting()
    env.observation_space, env.action_space = observation, action
    return env


@pytest.mark.parametrize(
    ("env", "problem"),
    [
        (with_spaces(action=spaces.Box(-np.inf, np.inf, (2,), np.float32)), "unbounded"),
        (with_spaces(action=spaces.Box(-1.0, 1.0, (2, 2), np.float32)), "not a vector"),
        (with_spaces(action=spaces.MultiDiscrete([2, 3])), "MultiDiscrete"),
        (with_spaces(action=spaces.Discrete(3, start=1)), "Discrete from 0"),
        (with_spaces(observation=spaces.Box(0, 255, (84, 84, 3), np.uint8)), "ResizeObservation"),
        (with_spaces(observation=spaces.Sequence(ANY)), "cannot be made a vector"),
        (with_spaces(observation=spaces.Text(5)), "cannot be made a vector"),
    ],
)
def test_spaces_that_agents_cannot_use_are_refused_by_name(env, problem):
    with pytest.raises(MulvError, match=problem):
        adapt(env)


def test_nested_observations_become_one_float32_vector():
    inner = spaces.Dict({"a": spaces.Box(-1, 1, (2,), np.float64), "b": spaces.Discrete(3)})
    env = adapt(with_spaces(observation=inner))
    assert (env.observation_space.shape, env.observation_space.dtype) == ((5,), np.float32)
    obs = env.env.observation({"a": np.array([0.5, -0.5]), "b": 2})
    assert obs.dtype == np.float32
    np.testing.assert_array_equal(obs, [0.5, -0.5, 0.0, 0.0, 1.0])


CAMERA = spaces.Box(0, 255, (64, 64, 3), np.uint8)
SENSORS = spaces.Dict(
    {"arm": spaces.Box(-1, 1, (3,), np.float32), "camera": CAMERA, "touch": spaces.Discrete(2)}
)


class Robot(Counting):
    """Vectors and an image side by side."""

    def __init__(self, space: spaces.Space = SENSORS):
        super().__init__()
        self.observation_space = space

    def _obs(self):
        self.observation_space.seed(self.count)
        return self.observation_space.sample()


@pytest.mark.parametrize(
    ("space", "keep", "line"),
    [
        (SENSORS, None, "entry 'camera' is an image, .*vectors, --keep arm,touch or .*image, --keep camera$"),
        (SENSORS, ("arm", "camera"), "entry 'camera' is an image, .*--keep arm,touch or"),
        (SENSORS, (0, 5), "entry 'camera' is an image"),
        (spaces.Dict({"camera": CAMERA}), None, "not supported yet; keep only the image, --keep camera$"),
        (spaces.Dict({"head": spaces.Dict({"eye": CAMERA}), "arm": ANY}), None, "'head.eye' .*--keep arm$"),
        (spaces.Dict({"head": spaces.Dict({"eye": CAMERA})}), None, "'head.eye' .*wrap the environment"),
        (spaces.Tuple([ANY, CAMERA]), None, "'1' is an image, and an image inside a Tuple .*wrap the env"),
    ],
)
def test_an_image_beside_vectors_is_refused_with_what_to_keep(space, keep, line):
    with pytest.raises(MulvError, match=line) as error:
        adapt(Robot(space), keep)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("keep", [("arm",), (0, 1, 2)])
def test_vectors_are_kept_and_an_image_is_dropped_for_good(keep):
    lanes = lanes_of(lambda: adapt(Robot(), keep))
    lanes.start()
    SENSORS.seed(0)
    shown = SENSORS.sample()
    np.testing.assert_array_equal(lanes.obs[0], shown["arm"])
    np.testing.assert_array_equal(lanes.hidden[0], np.eye(2)[shown["touch"]])  # without 12 288 pixels


def test_only_the_image_is_kept():
    env = adapt(Robot(), ("camera",))
    assert env.observation_space == CAMERA
    obs, _ = env.reset(seed=0)
    SENSORS.seed(0)
    np.testing.assert_array_equal(obs, SENSORS.sample()["camera"])


def test_an_image_of_another_size_is_refused_inside_a_dictionary_too():
    space = spaces.Dict({"arm": ANY, "camera": spaces.Box(0, 255, (84, 84, 3), np.uint8)})
    with pytest.raises(MulvError, match=r"images \(84, 84, 3\)"):
        adapt(Robot(space), ("camera",))


def test_every_entry_may_be_kept_by_name():
    space = spaces.Dict({"a": ANY, "b": UNIT})
    obs, _ = adapt(Robot(space), ("b", "a")).reset(seed=0)
    space.seed(0)
    shown = space.sample()
    np.testing.assert_array_equal(obs, np.concatenate([shown["a"], shown["b"]]))


class DiscreteCounting(Counting):
    action_space = spaces.Discrete(3)


def test_one_hot_actions_reach_a_discrete_environment_as_indices():
    lanes = lanes_of(lambda: adapt(DiscreteCounting()))
    assert (lanes.spec.discrete, lanes.spec.act_dim) == (True, 3)
    lanes.start()
    for index in (2, 0, 1):
        (rows, *_) = lanes.step(np.eye(3, dtype=np.float32)[[index]])
        np.testing.assert_array_equal(rows.action, np.eye(3)[[index]])
    assert lanes.env.envs[0].unwrapped.actions == [2, 0, 1]


def test_random_actions_cover_their_space():
    rng = np.random.default_rng(0)
    discrete, continuous = lanes_of(DiscreteCounting), lanes_of(Counting)
    one_hot = np.concatenate([discrete.random_actions(rng) for _ in range(100)])
    assert sorted(map(tuple, np.unique(one_hot, axis=0))) == [(0, 0, 1), (0, 1, 0), (1, 0, 0)]
    uniform = np.concatenate([continuous.random_actions(rng) for _ in range(1000)])
    assert np.abs(uniform).max() <= 1.0
    np.testing.assert_allclose(np.quantile(uniform, [0.25, 0.5, 0.75]), [-0.5, 0.0, 0.5], atol=0.06)
