"""Checks whether this machine can render frames, how fast, and what to install if it cannot."""

import time
from collections.abc import Iterator

from mulv.envs.make import make_env
from mulv.envs.rendering.gl import BACKENDS, PACKAGES, Quality, find_gl, try_backend
from mulv.envs.simulators import SIMULATORS

SECONDS = 1.0  # duration of a measurement
QUALITIES: tuple[Quality, ...] = ("fast", "paper")


def examine() -> Iterator[str]:
    """Yields the lines of the report, and raises an error if no backend can render."""
    for backend in BACKENDS:
        trial = try_backend(backend)
        if trial.gl is None:
            yield f"{backend:11}does not work: {trial.problem}; apt-get install -y {PACKAGES[backend]}"
        else:
            where = "the CPU" if trial.gl.software else "a GPU"
            yield f"{backend:11}works: {trial.gl.renderer}, on {where}"
    yield f"{'frames':11}Pendulum-px {frames_per_second('Pendulum-px', None):.0f}/s, drawn without GL"
    gl = find_gl()
    tasks = ["cheetah-run-px"]
    if SIMULATORS["metaworld"].installed:
        tasks.append("metaworld/drawer-close-px")
    else:
        yield f"{'metaworld':11}is not installed: pip install 'mulv[metaworld]'"
    for task in tasks:
        rates = ", ".join(f"{quality} {frames_per_second(task, quality):.0f}/s" for quality in QUALITIES)
        yield f"{'frames':11}{task} {rates}, with {gl.backend}"
    yield f"{'default':11}--render-quality {gl.quality}"


def frames_per_second(task: str, quality: Quality | None) -> float:
    """The rate of rendering a task whose simulator does not step."""
    env = make_env(task, render_quality=quality)
    try:
        env.reset(seed=0)
        drawn, start = 0, time.perf_counter()
        while time.perf_counter() - start < SECONDS:
            env.render()
            drawn += 1
        return drawn / (time.perf_counter() - start)
    finally:
        env.close()
