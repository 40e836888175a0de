"""µLV-Rep on frames: an image VAE makes a vector of each, and these vectors are what µLV-Rep observes.

See docs/algorithms/pixels.md.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray, UInt8

from mulv.agents.base import AbstractAgent
from mulv.agents.mulv.agent import MuLV, MuLVState
from mulv.agents.mulv.batches import as_networks_see, as_observed
from mulv.agents.mulv.config import MuLVConfig
from mulv.agents.mulv.vae import ImageVAE, learn_frames
from mulv.core.errors import MulvError
from mulv.core.learner import Trained, start_training
from mulv.core.spec import BatchSpec, EnvSpec
from mulv.core.types import Batch, Metrics, PyTree
from mulv.core.window import WindowMemory
from mulv.nets.image import FRAME_SHAPE, Frame

Frames = UInt8[Array, "batch time 64 64 3"]
Embeddings = Float[Array, "batch time obs"]


class PixelState(NamedTuple):
    """Everything that is learned."""

    vae: Trained
    mulv: MuLVState
    updates: Int[Array, ""]


@dataclass(frozen=True)
class PixelMuLV(AbstractAgent):
    """µLV-Rep whose observations are the embeddings of frames."""

    config: MuLVConfig
    spec: EnvSpec

    def __post_init__(self) -> None:
        if self.spec.obs_shape != FRAME_SHAPE or self.spec.obs_dtype != "uint8":
            raise MulvError(
                f"µLV-Rep sees frames {FRAME_SHAPE} of uint8; "
                f"this task shows {self.spec.obs_shape} of {self.spec.obs_dtype}"
            )
        if self.config.image.batch_size > self.config.batch_size:
            raise MulvError(
                f"image.batch_size is {self.config.image.batch_size}; "
                f"it must be at most batch_size, {self.config.batch_size}"
            )

    @property
    def on_vectors(self) -> MuLV:
        """The agent that takes embeddings for observations."""
        shown = EnvSpec((self.config.image.embedding_dim,), self.spec.act_dim, self.spec.discrete)
        return MuLV(self.config, shown)

    @property
    def batch_spec(self) -> BatchSpec:
        """With the frames of x_{h+n} among those that follow x_h, so that one place has them all."""
        spec = self.on_vectors.batch_spec
        return replace(spec, future=max(spec.future, spec.n_step))

    @property
    def pretraining(self) -> int:
        return self.config.image.pretraining

    def init(self, key: PRNGKeyArray) -> PixelState:
        vae_key, mulv_key = jax.random.split(key)
        vae = ImageVAE(self.config.image, key=vae_key)
        return PixelState(
            vae=start_training(self.config.image.optimiser, vae),
            mulv=self.on_vectors.init(mulv_key),
            updates=jnp.zeros((), jnp.int32),
        )

    def init_memory(self) -> WindowMemory:
        return WindowMemory(self.spec, self.config.window)

    def act(
        self, state: PixelState, memory: WindowMemory, o_h: Frame, key: PRNGKeyArray, *, deterministic: bool
    ) -> tuple[Float[Array, "act"], WindowMemory]:
        now = memory.push_obs(o_h)
        seen = embed_memory(state.vae.params, now)
        # The agent on vectors pushes the newest embedding itself; the entry that this pushes out is unused.
        before = eqx.tree_at(lambda m: m.obs, memory, jnp.roll(seen.obs, 1, axis=0))
        a_h, _ = self.on_vectors.act(state.mulv, before, seen.obs[-1], key, deterministic=deterministic)
        return a_h, now.push_action(a_h)

    def update(self, state: PixelState, batch: Batch, key: PRNGKeyArray) -> tuple[PixelState, Metrics]:
        """A step of the VAE on some of the newest frames o_h, then Algorithm 1 on the embeddings of all.

        No frame is embedded twice, and all by the VAE as it was before its step. While it is pre-trained, it
        learns alone.
        """
        vae_key, mulv_key = jax.random.split(key)
        frames, c = frames_of(batch), self.config
        newest, others = split_frames(batch.reward.shape[0], frames.shape[1], c.window, c.image.batch_size)
        flat = frames.reshape(-1, *FRAME_SHAPE)
        vae, known, metrics = learn_frames(c.image, state.vae, flat[newest], vae_key)

        def learn() -> tuple[MuLVState, Metrics]:
            rest = jax.vmap(state.vae.params.embed)(flat[others])
            joined = jnp.concatenate([known, rest])[np.argsort(np.concatenate([newest, others]))]
            embedded = self._with_embeddings(batch, joined.reshape(*frames.shape[:2], -1))
            return self.on_vectors.update(state.mulv, embedded, mulv_key)

        def wait() -> tuple[MuLVState, Metrics]:
            nothing: PyTree = jax.eval_shape(learn)[1]
            return state.mulv, jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), nothing)

        mulv, more = jax.lax.cond(state.updates < self.pretraining, wait, learn)
        return PixelState(vae, mulv, state.updates + 1), metrics | more

    def latent(self, state: PixelState, memory: WindowMemory) -> Float[Array, "latent"]:
        return self.on_vectors.latent(state.mulv, embed_memory(state.vae.params, memory))

    def inspect(self, state: PixelState, batch: Batch, key: PRNGKeyArray) -> Metrics:
        return self.on_vectors.inspect(state.mulv, self._embedded(state, batch), key)

    def pictures(self, state: PixelState, batch: Batch) -> UInt8[Array, "batch 4 64 64 3"]:
        """Of each window: o_h, o_h as the VAE draws it, o_{h+1}, and o_{h+1} as z predicts it (of twins, the
        first)."""
        data = self._embedded(state, batch)
        moments, representation = state.mulv.obs_moments, state.mulv.representation.params
        seen = as_networks_see(self.config, moments, state.mulv.reward_moments, data)
        p = jax.vmap(representation.p)(jax.vmap(representation.encode)(seen.x_h), data.a_h)
        said, _ = jax.vmap(representation.predict)(p[0].mean, data.future.actions)
        o_h = data.x_h.obs[:, -1]
        o_h1 = as_observed(self.config, moments, o_h, said[:, 0])
        draw = jax.vmap(state.vae.params.draw)
        return jnp.stack([batch.x_h.obs[:, -1], draw(o_h), batch.future.obs[:, 0], draw(o_h1)], axis=1)

    def _embedded(self, state: PixelState, batch: Batch) -> Batch:
        frames = frames_of(batch)
        return self._with_embeddings(batch, jax.vmap(jax.vmap(state.vae.params.embed))(frames))

    def _with_embeddings(self, batch: Batch, embeddings: Embeddings) -> Batch:
        return with_embeddings(batch, embeddings, self.config.n_step, self.config.future)


def frames_of(batch: Batch) -> Frames:
    """Every frame of a batch once, in their order: the window x_h, then what followed.

    The window x_{h+n} is among these where the batch has as many steps after x_h as it sums rewards.
    """
    return jnp.concatenate([batch.x_h.obs, batch.future.obs], axis=1)


def split_frames(rows: int, times: int, window: int, number: int) -> tuple[np.ndarray, np.ndarray]:
    """Positions among the flattened frames: o_h of the first windows, which are all real; and the others."""
    position = np.arange(rows * times).reshape(rows, times)
    newest = position[:number, window - 1]
    return newest, np.setdiff1d(position, newest)


def with_embeddings(batch: Batch, embeddings: Embeddings, n_step: int, future: int) -> Batch:
    """The batch with an embedding in place of each of `frames_of`'s, and no more than `future` steps."""
    window = batch.x_h.mask.shape[1]
    real = jnp.concatenate([batch.x_h.mask, batch.future.mask], axis=1)
    embeddings = jnp.where(real[..., None], embeddings, 0.0)
    taken = jnp.sum(batch.future.mask[:, :n_step], axis=1)  # k: how far on x_{h+k} is
    later = taken[:, None] + jnp.arange(window)[None]
    return batch._replace(
        x_h=batch.x_h._replace(obs=embeddings[:, :window]),
        x_hn=batch.x_hn._replace(obs=jnp.take_along_axis(embeddings, later[..., None], axis=1)),
        future=jax.tree.map(lambda leaf: leaf[:, :future], batch.future._replace(obs=embeddings[:, window:])),
    )


def embed_memory(vae: ImageVAE, memory: WindowMemory) -> WindowMemory:
    """The same window with embeddings for frames; what is not real stays zero."""
    obs = jnp.where(memory.mask[:, None], jax.vmap(vae.embed)(memory.obs), 0.0)
    return eqx.tree_at(lambda m: m.obs, memory, obs)


def mulv_agent(config: MuLVConfig, spec: EnvSpec) -> MuLV | PixelMuLV:
    """µLV-Rep on what a task shows: vectors or frames."""
    return MuLV(config, spec) if len(spec.obs_shape) == 1 else PixelMuLV(config, spec)
