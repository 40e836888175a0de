"""µLV-Rep on frames: an image VAE embeds each frame, and µLV-Rep uses the embeddings as observations.

The run stores the embeddings of all frames (run/embeddings.py), so that an update encodes only few frames.
See docs/algorithms/pixels.md.
"""

from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, UInt8

from mulv.agents.base import AbstractWindowAgent
from mulv.agents.encoder import ObservationEncoder
from mulv.agents.mulv.agent import MuLV
from mulv.agents.mulv.config import MuLVConfig
from mulv.agents.mulv.normalisation import denormalise_prediction
from mulv.agents.mulv.state import MuLVState
from mulv.agents.mulv.vae import FRAME_METRICS, ImageConfig, ImageVAE, learn_frames
from mulv.core.errors import MulvError
from mulv.core.learner import Trained, start_training, when
from mulv.core.spec import FRAME_SHAPE, BatchSpec, EnvSpec
from mulv.core.types import Batch, Metrics, Window
from mulv.nets.image import Frame


class PixelState(NamedTuple):
    """Everything that is learned."""

    vae: Trained
    seen: Metrics  # metrics of the VAE's last step
    mulv: MuLVState
    updates: Int[Array, ""]


@dataclass(frozen=True)
class PixelMuLV(AbstractWindowAgent):
    """µLV-Rep whose observations are the embeddings of frames."""

    config: MuLVConfig
    spec: EnvSpec

    def __post_init__(self) -> None:
        if self.spec.obs_shape != FRAME_SHAPE or self.spec.obs_dtype != "uint8":
            raise MulvError(
                f"µLV-Rep sees frames {FRAME_SHAPE} of uint8; "
                f"this task shows {self.spec.obs_shape} of {self.spec.obs_dtype}"
            )
        if self.image.batch_size > self.config.batch_size:
            raise MulvError(
                f"image.batch_size is {self.image.batch_size}; "
                f"it must be at most batch_size, {self.config.batch_size}"
            )

    @property
    def image(self) -> ImageConfig:
        return self.config.image or ImageConfig()

    @property
    def on_vectors(self) -> MuLV:
        """The agent whose observations are the embeddings."""
        shown = EnvSpec((self.image.embedding_dim,), self.spec.act_dim, self.spec.discrete)
        return MuLV(self.config, shown)

    @property
    def batch_spec(self) -> BatchSpec:
        return replace(self.on_vectors.batch_spec, frames=self.image.batch_size)

    @property
    def encoder(self) -> "FrameEncoder":
        return FrameEncoder(self.image.embedding_dim, self.image.pretraining, self.image.refreshed, self)

    def init(self, key: PRNGKeyArray) -> PixelState:
        vae_key, mulv_key = jax.random.split(key)
        vae = ImageVAE(self.image, key=vae_key)
        return PixelState(
            vae=start_training(self.image.optimiser, vae),
            seen={name: jnp.zeros(()) for name in FRAME_METRICS},
            mulv=self.on_vectors.init(mulv_key),
            updates=jnp.zeros((), jnp.int32),
        )

    def act(
        self, state: PixelState, memory: Window, noise: Float[Array, "act"] | None
    ) -> Float[Array, "act"]:
        return self.on_vectors.act(state.mulv, embed_window(state.vae.params, memory), noise)

    def update(self, state: PixelState, batch: Batch, key: PRNGKeyArray) -> tuple[PixelState, Metrics]:
        """A step of Algorithm 1 on embeddings, and at every `image.every`-th update one of the VAE.

        During pretraining only the VAE is trained.
        """
        vae_key, mulv_key = jax.random.split(key)
        pretrains = state.updates < self.image.pretraining

        def look() -> tuple[Trained, Metrics]:
            assert batch.frames is not None
            kept = batch.x_h.obs[: len(batch.frames), -1]
            return learn_frames(self.image, state.vae, batch.frames, kept, state.updates, vae_key)

        due = pretrains | (state.updates % self.image.every == 0)
        vae, seen = jax.lax.cond(due, look, lambda: (state.vae, state.seen))

        def learn() -> tuple[MuLVState, Metrics]:
            return self.on_vectors.update(state.mulv, batch, mulv_key)

        mulv, metrics = when(~pretrains, learn, state.mulv)
        return PixelState(vae, seen, mulv, state.updates + 1), metrics | seen

    def latent(self, state: PixelState, memory: Window, a_h: Float[Array, "act"]) -> Float[Array, "latent"]:
        return self.on_vectors.latent(state.mulv, embed_window(state.vae.params, memory), a_h)

    def inspect(self, state: PixelState, batch: Batch, key: PRNGKeyArray) -> Metrics:
        return self.on_vectors.inspect(state.mulv, batch, key)


@dataclass(frozen=True)
class FrameEncoder(ObservationEncoder):
    """The VAE of µLV-Rep on frames."""

    agent: PixelMuLV

    def embed(self, state: PixelState, o_h: Frame) -> Float[Array, "obs"]:
        return state.vae.params.embed(o_h)

    def pictures(self, state: PixelState, batch: Batch) -> UInt8[Array, "batch 4 64 64 3"]:
        """For each window: o_h, its reconstruction by the VAE, o_{h+1}, its prediction from the first z."""
        embed = jax.vmap(partial(embed_all, state.vae.params))
        x_h = jax.vmap(partial(embed_window, state.vae.params))(batch.x_h)
        future = batch.future._replace(obs=embed(batch.future.obs, batch.future.mask))
        data = batch._replace(x_h=x_h, x_hn=x_h, future=future)
        moments, representation = state.mulv.obs_moments, state.mulv.representation.params
        seen = self.agent.on_vectors.normalise(state.mulv, data)
        p = jax.vmap(representation.p)(jax.vmap(representation.encode)(seen.x_h), data.a_h)
        said, _ = jax.vmap(representation.predict)(p[0].mean, data.future.actions)
        o_h = data.x_h.obs[:, -1]
        o_h1 = denormalise_prediction(self.agent.config, moments, o_h, said[:, 0])
        draw = jax.vmap(state.vae.params.draw)
        return jnp.stack([batch.x_h.obs[:, -1], draw(o_h), batch.future.obs[:, 0], draw(o_h1)], axis=1)


def embed_all(
    vae: ImageVAE, frames: UInt8[Array, "time 64 64 3"], mask: Bool[Array, "time"]
) -> Float[Array, "time obs"]:
    """Embeddings of frames; zero where `mask` is False."""
    return jnp.where(mask[:, None], jax.vmap(vae.embed)(frames), 0.0)


def embed_window(vae: ImageVAE, x_h: Window) -> Window:
    """The window with embeddings in place of frames."""
    return x_h._replace(obs=embed_all(vae, x_h.obs, x_h.mask))


def mulv_agent(config: MuLVConfig, spec: EnvSpec) -> MuLV | PixelMuLV:
    """The µLV-Rep agent for a task's observations: vectors or frames."""
    return MuLV(config, spec) if len(spec.obs_shape) == 1 else PixelMuLV(config, spec)
