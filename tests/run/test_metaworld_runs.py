"""Every Meta-world task, its first thousand steps: stepped, drawn, learned from, its success recorded."""

from pathlib import Path

import numpy as np
import pytest

from mulv.agents import preset
from mulv.core.errors import MulvError
from mulv.core.options import with_options
from mulv.envs import PIXEL_TASKS
from mulv.envs.rendering.gl import find_gl
from mulv.run.config import RunConfig
from mulv.run.train import train

pytest.importorskip("metaworld", reason="Meta-world is not installed: pip install 'mulv[metaworld]'")
TASKS = [name for name, task in PIXEL_TASKS.items() if task.simulator == "metaworld"]
PIXELS = preset("mulv", "pixels")
AGENT = with_options(PIXELS, {"image.pretraining": 8})
STEPS = 1000  # of the simulator: two of them a decision, five hundred an episode


@pytest.mark.slow
@pytest.mark.parametrize("task", TASKS)
def test_a_task_is_stepped_drawn_and_learned_from(task: str, tmp_path: Path) -> None:
    try:
        find_gl()
    except MulvError as error:
        pytest.skip(str(error))
    config = RunConfig(
        task=task,
        agent=AGENT,
        total_steps=STEPS,
        learning_starts=STEPS - 40,
        replay_capacity=STEPS,
        eval_every=STEPS,
        eval_episodes=1,
    )
    result = train(config, tmp_path / "run", progress=False).result
    assert result["env_steps"] == STEPS
    assert result["updates"] > AGENT.image.pretraining  # not of the VAE alone
    assert [[type(success) for success in each] for each in result["eval_success"]] == [[bool]]
    frames = np.fromfile(tmp_path / "run" / "replay" / "obs.bin", np.uint8).reshape(-1, 64, 64, 3)
    shown = frames[: STEPS // 2]
    assert shown.std() > 5  # not one colour
    assert len(np.unique(shown.reshape(len(shown), -1), axis=0)) > STEPS // 4
