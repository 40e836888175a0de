"""Every Meta-world task, an episode each: stepped, drawn, learned from by DrQ-v2, its success recorded."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from mulv.agents import preset
from mulv.core.errors import MulvError
from mulv.envs import PIXEL_TASKS
from mulv.envs.gl import find_gl
from mulv.run.config import RunConfig
from mulv.run.train import train

pytest.importorskip("metaworld", reason="Meta-world is not installed: pip install 'mulv[metaworld]'")
TASKS = [name for name, task in PIXEL_TASKS.items() if task.suite == "metaworld"]
AGENT = replace(preset("drqv2", "default"), batch_size=8)
EPISODE = 500  # simulator steps, two of them a decision


@pytest.mark.slow
@pytest.mark.parametrize("task", TASKS)
def test_a_task_is_stepped_drawn_and_learned_from(task: str, tmp_path: Path) -> None:
    try:
        find_gl()
    except MulvError as error:
        pytest.skip(str(error))
    config = RunConfig(
        task=task,
        algo="drqv2",
        agent=AGENT,
        total_steps=EPISODE,
        learning_starts=EPISODE - 4,
        update_every=1,
        eval_every=EPISODE,
        eval_episodes=1,
    )
    result = train(config, tmp_path / "run", progress=False).result
    assert result["env_steps"] == EPISODE
    assert result["updates"] >= 1
    assert [[type(success) for success in each] for each in result["eval_success"]] == [[bool]]
    frames = np.fromfile(tmp_path / "run" / "replay" / "obs.bin", np.uint8).reshape(-1, 64, 64, 3)
    shown = frames[: EPISODE // 2 + 1]
    assert shown.std() > 5  # not one colour
    assert len(np.unique(shown.reshape(len(shown), -1), axis=0)) > EPISODE // 4
