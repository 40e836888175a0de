"""The library from Python."""

import subprocess
import sys
from pathlib import Path

import equinox as eqx
import gymnasium as gym
import jax.numpy as jnp
import numpy as np
import pytest

import mulv
from mulv.api import Learner
from mulv.core.errors import MulvError
from mulv.envs.rendering.gl import find_gl
from mulv.nets.trunk import TrunkConfig
from mulv.run import compiled

TINY = {"window": 3, "batch_size": 8, "trunk": TrunkConfig("mlp", 16, 1), "learning_starts": 50}


def actions(agent: Learner, steps: int = 20) -> np.ndarray:
    """What an agent does from a fixed start."""
    env, memory, taken = mulv.make_env("Pendulum-P"), None, []
    obs, _ = env.reset(seed=3)
    for _ in range(steps):
        action, memory = agent.predict(obs, memory)
        obs, *_ = env.step(action)
        taken.append(action)
    return np.stack(taken)


def test_importing_leaves_jax_to_be_set_up_by_whoever_imports() -> None:
    """Devices and threads are chosen when JAX starts, so nothing may compute while it is imported."""
    code = "import mulv, mulv.agents, mulv.run.train, jax; jax.config.update('jax_num_cpu_devices', 3)"
    shown = subprocess.run(
        [sys.executable, "-c", f"{code}; print(jax.device_count())"], capture_output=True, text=True
    )
    assert shown.stdout == "3\n", shown.stderr


def test_learning_changes_what_the_agent_does_and_saving_keeps_it(tmp_path: Path) -> None:
    agent = mulv.SAC("mulv/Pendulum-P-v0", seed=1, eval_every=0, **TINY)
    before = actions(agent)
    agent.learn(200)
    after = actions(agent)
    assert not np.allclose(before, after)
    agent.save(tmp_path / "agent")
    agent.close()
    np.testing.assert_array_equal(actions(mulv.load(tmp_path / "agent")), after)


def test_learning_in_two_goes_equals_learning_at_once() -> None:
    one, two = (mulv.SAC("Pendulum-P", eval_every=0, **TINY) for _ in range(2))
    one.learn(400)
    two.learn(200).learn(200)
    np.testing.assert_array_equal(actions(one), actions(two))
    assert two.env_steps == 400


def test_any_gymnasium_environment_can_be_given() -> None:
    agent = mulv.SAC(gym.make("MountainCarContinuous-v0"), **TINY)
    agent.learn(120)
    action, memory = agent.predict(np.zeros(2))
    assert action.shape == (1,)
    assert memory.memory.mask.tolist() == [False, False, True]
    agent.close()


def test_predict_depends_on_the_memory_it_is_given() -> None:
    agent = mulv.SAC("Pendulum-P", **TINY)
    obs = np.asarray([0.5, 0.5])
    _, memory = agent.predict(np.asarray([1.0, 0.0]))
    assert not np.array_equal(agent.predict(obs)[0], agent.predict(obs, memory)[0])


def test_wrong_names_and_shapes_are_named() -> None:
    with pytest.raises(MulvError, match="did you mean 'window'"):
        mulv.SAC("Pendulum-P", windw=3)
    with pytest.raises(MulvError, match=r"shape \(3,\); this agent's is \(2,\)"):
        mulv.SAC("Pendulum-P", **TINY).predict(np.zeros(3))


def test_evaluation_reports_every_episode() -> None:
    evaluation = mulv.SAC("Pendulum-P", **TINY).evaluate(episodes=3)
    assert len(evaluation.returns) == len(set(evaluation.returns)) == 3
    assert evaluation.lengths == [200, 200, 200]


def test_a_plain_script_learns_a_task_that_a_camera_shows(tmp_path: Path) -> None:
    """Without a guard around it: a process of the environment's own would run it again."""
    try:
        find_gl()
    except MulvError as error:
        pytest.skip(str(error))
    script = tmp_path / "script.py"
    script.write_text(
        "import mulv\n"
        "agent = mulv.DrQV2('mulv/cartpole-swingup-px-v0', eval_every=0, replay_capacity=100)\n"
        "print(agent.learn(20).env_steps)\n"
    )
    ran = subprocess.run([sys.executable, script], capture_output=True, text=True)
    assert ran.stdout == "20\n", ran.stderr


class Stretch(gym.Env):
    """Pays the action itself, whose range is ±2; the observation is a dictionary."""

    observation_space = gym.spaces.Dict(
        {"a": gym.spaces.Box(-1, 1, (2,), np.float32), "b": gym.spaces.Discrete(3)}
    )
    action_space = gym.spaces.Box(-2.0, 2.0, (1,), np.float32)

    def _obs(self):
        return {
            "a": self.np_random.uniform(-1, 1, 2).astype(np.float32),
            "b": int(self.np_random.integers(3)),
        }

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.steps, self.taken = 0, []
        return self._obs(), {}

    def step(self, action):
        self.steps += 1
        self.taken.append(float(action[0]))
        return self._obs(), abs(float(action[0])), False, self.steps == 10, {}


def always(agent: Learner, action: float) -> None:
    """Make an actor of SAC say the same always: its last layer's bias, and no weight."""
    tree = compiled.unpack(agent.agent, agent.state)
    head = tree.actor.params.head
    bias = jnp.zeros_like(head.bias).at[0].set(np.arctanh(action))
    actor = eqx.tree_at(
        lambda a: (a.head.weight, a.head.bias), tree.actor.params, (jnp.zeros_like(head.weight), bias)
    )
    agent.state = compiled.pack(tree._replace(actor=tree.actor._replace(params=actor)))


def test_evaluation_in_ones_own_environment_spans_its_actions_and_takes_its_dictionaries() -> None:
    agent = mulv.SAC(Stretch(), **TINY)
    always(agent, 0.75)
    np.testing.assert_allclose(
        mulv.evaluate_policy(agent, Stretch, episodes=2).returns, [15.0, 15.0], rtol=1e-5
    )


def test_predict_takes_what_the_environment_gives_and_answers_in_its_range() -> None:
    env = Stretch()
    agent = mulv.SAC(env, **TINY)
    always(agent, 0.75)
    obs, _ = env.reset(seed=0)
    action, memory = agent.predict(obs)
    np.testing.assert_allclose(action, [1.5], rtol=1e-5)
    assert env.action_space.contains(action)
    flat = np.concatenate([obs["a"], np.eye(3)[obs["b"]]])
    np.testing.assert_allclose(memory.memory.obs[-1], flat, rtol=1e-6)
    with pytest.raises(MulvError, match="does not fit this agent's environment"):
        agent.predict({"a": obs["a"]})


def test_predict_answers_in_the_range_of_a_gymnasium_id_and_in_the_unit_box_of_a_task() -> None:
    for name, expected in (("Pendulum-v1", 1.5), ("mulv/Pendulum-P-v0", 0.75)):
        agent = mulv.SAC(name, **TINY)
        always(agent, 0.75)
        np.testing.assert_allclose(agent.predict(np.ones(agent.spec.obs_dim))[0], [expected], rtol=1e-5)


def test_an_environment_of_another_kind_is_refused() -> None:
    agent = mulv.SAC("Pendulum-P", **TINY)
    with pytest.raises(MulvError, match="learned from"):
        mulv.evaluate_policy(agent, Stretch)
    with pytest.raises(MulvError, match="episodes is 0"):
        agent.evaluate(episodes=0)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_predict_refuses_what_is_no_number(bad: float) -> None:
    with pytest.raises(MulvError, match="NaN or inf"):
        mulv.SAC("Pendulum-P", **TINY).predict(np.asarray([bad, 0.0]))


def test_a_loaded_agent_learns_on_from_its_weights(tmp_path: Path) -> None:
    """The first new updates start at the loaded weights: with none yet, they are the same."""
    agent = mulv.SAC("Pendulum-P", seed=1, eval_every=0, **TINY)
    agent.learn(200)
    agent.save(tmp_path / "agent")
    loaded = mulv.load(tmp_path / "agent")
    before = actions(loaded)
    loaded.learn(TINY["learning_starts"] - 10)  # too few steps to learn from
    np.testing.assert_array_equal(actions(loaded), before)
    assert loaded.env_steps == 200 + TINY["learning_starts"] - 10
    loaded.learn(100)
    assert not np.array_equal(actions(loaded), before)
    for one in (agent, loaded):
        one.close()


def test_an_agent_loaded_from_a_run_learns_on_with_its_experience(tmp_path: Path) -> None:
    """So that loading changes nothing: it equals the run that was never interrupted."""
    whole = mulv.SAC("Pendulum-P", seed=1, eval_every=0, **TINY).learn(400)
    mulv.SAC("Pendulum-P", seed=1, eval_every=0, **TINY).learn(200, run_directory=tmp_path / "run")
    loaded = mulv.load(tmp_path / "run").learn(200)
    np.testing.assert_array_equal(actions(loaded), actions(whole))
    assert loaded.env_steps == 400
    assert mulv.load(tmp_path / "run").env_steps == 200  # the run itself is as it was
    for one in (whole, loaded):
        one.close()


def test_closing_keeps_a_directory_that_was_given(tmp_path: Path) -> None:
    agent = mulv.SAC("Pendulum-P", eval_every=0, **TINY)
    agent.learn(60, run_directory=tmp_path / "mulv-mine")
    agent.close()
    assert (tmp_path / "mulv-mine" / "result.json").exists()


def test_closing_deletes_the_directory_that_learning_made() -> None:
    agent = mulv.SAC("Pendulum-P", eval_every=0, **TINY)
    agent.learn(60)
    made = agent._directory
    assert made is not None
    assert made.exists()
    agent.close()
    assert not made.exists()


def test_saving_over_a_save_of_more_steps_keeps_the_newer_agent(tmp_path: Path) -> None:
    old, new = (mulv.SAC("Pendulum-P", seed=seed, eval_every=0, **TINY) for seed in (1, 2))
    old.learn(200).save(tmp_path / "best")
    new.learn(100).save(tmp_path / "best")
    loaded = mulv.load(tmp_path / "best")
    assert (loaded.env_steps, loaded.config.seed) == (100, 2)
    np.testing.assert_array_equal(actions(loaded), actions(new))
    for one in (old, new):
        one.close()


def test_a_run_is_not_saved_over(tmp_path: Path) -> None:
    agent = mulv.SAC("Pendulum-P", eval_every=0, **TINY).learn(60, run_directory=tmp_path / "run")
    config = (tmp_path / "run" / "config.json").read_text()
    with pytest.raises(MulvError, match="no saved agent"):
        agent.save(tmp_path / "run")
    assert (tmp_path / "run" / "config.json").read_text() == config


def test_learning_for_no_steps_changes_nothing_and_prevents_nothing() -> None:
    agent = mulv.SAC("Pendulum-P", eval_every=0, **TINY)
    before = actions(agent)
    agent.learn(0)
    np.testing.assert_array_equal(actions(agent), before)
    assert agent.learn(60).env_steps == 60
    agent.close()
    with pytest.raises(MulvError, match="total_timesteps is -1"):
        agent.learn(-1)


def test_the_environment_that_shows_its_shapes_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    closed = []
    monkeypatch.setattr(gym.envs.classic_control.PendulumEnv, "close", lambda env: closed.append(env))
    mulv.SAC("Pendulum-P", **TINY)
    assert len(closed) == 1
