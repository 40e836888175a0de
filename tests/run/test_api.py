"""The library from Python."""

import subprocess
import sys
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest

import mulv
from mulv.api import Learner
from mulv.core.errors import MulvError
from mulv.envs.gl import find_gl
from mulv.nets.trunk import TrunkConfig

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
    assert memory.mask.tolist() == [False, False, True]
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
