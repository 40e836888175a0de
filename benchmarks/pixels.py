"""What an update on frames costs at the paper's sizes, beside DrQ-v2 and the published architecture, and
drawing frames.

Batch 256, windows of three, features of 100, hidden layers of 1024, for all; the clock, turn by turn, each
figure the median over turns (of a ratio within a turn).
"""

import statistics
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import equinox as eqx
import jax
import numpy as np
import published_pixels
from tqdm import trange

from mulv.agents.base import AbstractAgent
from mulv.agents.drqv2 import PRESETS as DRQV2_PRESETS
from mulv.agents.drqv2 import DrQV2
from mulv.agents.mulv.config import PRESETS, MuLVConfig
from mulv.agents.mulv.pixels import PixelMuLV
from mulv.core.options import with_options
from mulv.core.spec import EnvSpec
from mulv.core.types import Batch, Future, Window
from mulv.envs.rendering.doctor import frames_per_second
from mulv.run import compiled

SPEC = EnvSpec((64, 64, 3), published_pixels.ACTIONS, obs_dtype="uint8")
BATCH, FEATURE, HIDDEN = 256, published_pixels.FEATURE, published_pixels.HIDDEN
DRAWN = "cheetah-run-px"


def paper_sized(config: MuLVConfig) -> MuLVConfig:
    """The same choices at the paper's sizes, with the VAE already pre-trained."""
    image = replace(config.image, embedding_dim=FEATURE, pretraining=0)
    trunk = replace(config.trunk, width=HIDDEN)
    return with_options(replace(config, batch_size=BATCH, trunk=trunk, image=image), {"latent.dim": FEATURE})


def random_batches(agent: AbstractAgent, updates: int) -> Batch:
    """Batches such as the replay gives, filled with noise."""
    rng, spec = np.random.default_rng(0), agent.batch_spec
    lead = (updates, spec.batch_size)

    def pictures(*shape: int) -> np.ndarray:
        return rng.integers(0, 256, (*shape, *SPEC.obs_shape), np.uint8)

    def observations(times: int) -> np.ndarray:
        if agent.encoder is None:
            return pictures(*lead, times)
        return rng.normal(size=(*lead, times, agent.encoder.dim)).astype(np.float32)

    def uniform(*shape: int) -> np.ndarray:
        return rng.uniform(-1, 1, (*lead, *shape, SPEC.act_dim)).astype(np.float32)

    def ones(*shape: int) -> np.ndarray:
        return np.ones((*lead, *shape), np.float32)

    def window() -> Window:
        mask = ones(spec.window) > 0
        return Window(observations(spec.window), uniform(spec.window - 1), mask, 0 * ones(spec.window))

    steps = spec.future
    future = Future(uniform(steps), ones(steps), observations(steps), ones(steps) > 0, ones(steps) < 0)
    frames = pictures(updates, spec.frames) if spec.frames else None
    return Batch(window(), uniform(), ones(), 0.97 * ones(), window(), future, 10_000 * ones(), frames)


def mulv_update(config: MuLVConfig) -> Callable[[], None]:
    """A round of updates of µLV-Rep, one of which has a step of the VAE; and the frames that it embeds.

    Those are the one that a step adds, and those embedded anew, for each update.
    """
    agent, key = PixelMuLV(paper_sized(config), SPEC), jax.random.key(0, impl="rbg")
    number = config.image.every
    state, batches = compiled.init(agent, key), random_batches(agent, number)
    frames = np.zeros((number * (1 + config.image.refreshed), *SPEC.obs_shape), np.uint8)

    def update() -> None:
        nonlocal state
        state, _, finite = compiled.update(agent, state, batches, key, np.int32(0))
        finite.block_until_ready()
        compiled.embed(agent, state, frames).block_until_ready()

    return update


def drqv2_update() -> Callable[[], None]:
    """An update of DrQ-v2, which sees frames in every one."""
    config = replace(DRQV2_PRESETS["paper"], batch_size=BATCH, feature_dim=FEATURE)
    agent, key = DrQV2(config, SPEC), jax.random.key(0, impl="rbg")
    state, batches = compiled.init(agent, key), random_batches(agent, 1)

    def update() -> None:
        nonlocal state
        state, _, finite = compiled.update(agent, state, batches, key, np.int32(0))
        finite.block_until_ready()

    return update


def published_update() -> Callable[[], None]:
    """An update of the published architecture."""
    key = jax.random.key(0, impl="rbg")
    state, data = eqx.filter_jit(published_pixels.init)(key), published_pixels.random_data(BATCH)
    step = eqx.filter_jit(published_pixels.update)

    def update() -> None:
        nonlocal state
        state, norm = step(state, data, key)
        norm.block_until_ready()

    return update


def measure(turns: int) -> dict[str, Any]:
    """Updates a second, their ratio, and frames drawn a second."""
    updates = {
        "default": mulv_update(PRESETS["default"]),
        "paper": mulv_update(PRESETS["paper"]),
        "drqv2": drqv2_update(),
        "published": published_update(),
    }
    of_a_call = {name: PRESETS[name].image.every if name in PRESETS else 1 for name in updates}
    for update in updates.values():
        update()  # compile
    seconds: dict[str, list[float]] = {name: [] for name in updates}
    for _ in trange(turns, desc="pixels, turns"):
        for name, update in updates.items():
            start = time.perf_counter()
            update()
            seconds[name].append((time.perf_counter() - start) / of_a_call[name])
    ratios = [slow / fast for slow, fast in zip(seconds["published"], seconds["default"], strict=True)]
    rates = {name: round(1 / statistics.median(s), 3) for name, s in seconds.items()}
    return {
        "pixel_over_published": round(statistics.median(ratios), 2),
        "pixel_updates_per_s": rates["default"],
        "pixel_updates_per_s_of_each": rates,
        "render_fps": {
            f"{DRAWN}, {quality}": round(frames_per_second(DRAWN, quality), 1)
            for quality in ("fast", "paper")
        },
        "pixel_setting": {"batch": BATCH, "window": 3, "feature": FEATURE, "hidden": HIDDEN},
    }
