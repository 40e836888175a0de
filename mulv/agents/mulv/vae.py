"""The image VAE: frames to vectors and back, learned from frames alone."""

from dataclasses import dataclass
from typing import Annotated, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int, PRNGKeyArray, UInt8

from mulv.core.gaussian import DiagonalNormal, squashed_std
from mulv.core.learner import Trained, descend
from mulv.core.limits import NOT_NEGATIVE, POSITIVE, at_least, one_of
from mulv.core.options import Group
from mulv.core.spec import FRAME_SHAPE
from mulv.core.types import Metrics
from mulv.nets.augment import random_shift
from mulv.nets.image import (
    Frame,
    ImageDecoder,
    ImageEncoder,
    Picture,
    denormalise,
    enlarge,
    normalise,
    shrink,
)

Embedding = Float[Array, "obs"]
SIZES = (16, 32, 64)
FRAME_METRICS = ("image/error", "image/kl", "image/staleness")


@dataclass(frozen=True)
class ImageConfig(Group):
    """How frames become vectors; of no effect where observations are vectors."""

    name: ClassVar[str] = "image"
    embedding_dim: Annotated[int, at_least(1)] = 32
    """Entries of the vector that stands for a frame."""
    channels: Annotated[int, at_least(1)] = 16
    """Of every convolution of the VAE."""
    batch_size: Annotated[int, at_least(1)] = 16
    """Frames that the VAE learns from in an update, at most as many as there are windows."""
    pretraining: Annotated[int, NOT_NEGATIVE] = 1000
    """Updates of the VAE alone, once learning starts."""
    every: Annotated[int, at_least(1)] = 4
    """Updates from one step of the VAE to the next, once it is pre-trained."""
    refreshed: Annotated[int, at_least(1)] = 8
    """Frames of the replay that are embedded anew per update, on average."""
    learning_rate: Annotated[float, POSITIVE] = 1e-3
    """Adam's step size, for the VAE."""
    kl_weight: Annotated[float, NOT_NEGATIVE] = 1.0
    """Weight of the embedding's KL to a unit Gaussian; 1 is the ELBO of pixels of unit variance."""
    pad: Annotated[int, NOT_NEGATIVE] = 0
    """Pixels by which the frames that the VAE learns from are shifted at most; 0 is not at all."""
    centred: bool = False
    """Take the mean frame of pre-training from every frame, so that what moves is all that is left."""
    drawn: Annotated[int, one_of(*SIZES)] = 64
    """Edge of the pictures that the decoder draws: at 32 or 16, where pixels are means of the frame's, a step
    is cheaper, and what is thin is found sooner."""

    @property
    def optimiser(self) -> optax.GradientTransformation:
        return optax.adam(self.learning_rate)


class ImageVAE(eqx.Module):
    """q(e | frame) and p(frame | e); the mean of q is the frame's embedding."""

    encoder: ImageEncoder
    decoder: ImageDecoder
    background: Picture  # subtracted from every picture; not trained by gradients

    def __init__(self, config: ImageConfig, *, key: PRNGKeyArray):
        encoder_key, decoder_key = jax.random.split(key)
        self.encoder = ImageEncoder(2 * config.embedding_dim, config.channels, key=encoder_key)
        self.decoder = ImageDecoder(config.embedding_dim, config.channels, config.drawn, key=decoder_key)
        self.background = jnp.zeros(FRAME_SHAPE)

    def picture(self, frame: Frame) -> Picture:
        """The frame as input of the encoder: normalised, without the background."""
        return normalise(frame) - jax.lax.stop_gradient(self.background)

    def posterior(self, picture: Picture) -> DiagonalNormal:
        """q(e | frame)."""
        return _gaussian(self.encoder(picture))

    def embed(self, frame: Frame) -> Embedding:
        """The embedding of a frame, for use without gradients.

        On a CPU, XLA's plain convolution is slow only in its gradients, so it is used here.
        """
        return _gaussian(self.encoder(self.picture(frame), "plain")).mean

    def draw(self, embedding: Embedding) -> Frame:
        """The reconstructed frame of an embedding."""
        return denormalise(enlarge(self.decoder(embedding)) + self.background)


def _gaussian(out: Float[Array, "out"]) -> DiagonalNormal:
    mean, log_std = jnp.split(out, 2)
    return DiagonalNormal(mean, squashed_std(log_std))


class FrameElboTerms(NamedTuple):
    """The terms of one frame's negative ELBO, and the frame's embedding."""

    error: Float[Array, ""]  # −log p(frame | e), up to a constant: pixels of unit variance
    kl: Float[Array, "obs"]  # KL(q ‖ N(0, I)), one term per dimension
    embedding: Embedding


def frame_elbo_terms(vae: ImageVAE, frame: Frame, noise: Embedding) -> FrameElboTerms:
    """The terms of the negative ELBO of a frame, for e ~ q."""
    picture = vae.picture(frame)
    q = vae.posterior(picture)
    drawn = vae.decoder(q.sample(noise))
    pixels = picture.size / drawn.size  # per decoded pixel, so that the sum is over the frame's
    error = 0.5 * pixels * jnp.sum(jnp.square(shrink(picture, drawn.shape[0]) - drawn))
    unit = DiagonalNormal(jnp.zeros_like(q.mean), jnp.ones_like(q.std))
    return FrameElboTerms(error, q.kl(unit), q.mean)


def _look_behind(
    config: ImageConfig, vae: ImageVAE, frames: UInt8[Array, "batch 64 64 3"], number: Int[Array, ""]
) -> ImageVAE:
    """Update the background: the mean of all frames of pretraining so far, fixed once that is over."""
    share = jnp.where(number < config.pretraining, 1.0 / (number + 1), 0.0)
    change = share * (jnp.mean(jax.vmap(normalise)(frames), axis=0) - vae.background)
    return eqx.tree_at(lambda v: v.background, vae, vae.background + change)


def learn_frames(
    config: ImageConfig,
    trained: Trained,
    frames: UInt8[Array, "batch 64 64 3"],
    kept: Float[Array, "batch obs"],
    number: Int[Array, ""],
    key: PRNGKeyArray,
) -> tuple[Trained, Metrics]:
    """The VAE after one step, and metrics; `number` counts the updates from 0.

    Staleness is the squared difference between the stored embeddings `kept` and the present ones.
    """
    noise = jax.random.normal(key, (frames.shape[0], config.embedding_dim))
    shown = random_shift(frames, jax.random.fold_in(key, 1), pad=config.pad)
    if config.centred:
        trained = trained._replace(params=_look_behind(config, trained.params, shown, number))

    def loss(vae: ImageVAE) -> tuple[Array, FrameElboTerms]:
        terms = jax.vmap(lambda f, n: frame_elbo_terms(vae, f, n))(shown, noise)
        return jnp.mean(terms.error) + config.kl_weight * jnp.mean(jnp.sum(terms.kl, axis=-1)), terms

    gradient, terms = eqx.filter_grad(loss, has_aux=True)(trained.params)
    now = jax.vmap(trained.params.embed)(frames) if config.pad else terms.embedding
    trained, _ = descend(config.optimiser, trained, gradient)
    changed = jnp.mean(jnp.square(now - kept))
    metrics = {
        "image/error": jnp.mean(terms.error),
        "image/kl": jnp.mean(jnp.sum(terms.kl, axis=-1)),
        "image/staleness": changed / (jnp.mean(jnp.var(now, axis=0)) + 1e-8),
    }
    return trained, metrics
