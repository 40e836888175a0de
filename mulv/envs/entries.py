"""The entries of an observation space: which are numbers, and which are images."""

from typing import NoReturn

import numpy as np
from gymnasium import spaces

from mulv.core.errors import MulvError
from mulv.envs.rendering.frames import is_image


def is_numeric(space: spaces.Space) -> bool:
    """Whether a space contains only numbers."""
    if isinstance(space, spaces.Dict):
        return all(map(is_numeric, space.spaces.values()))
    if isinstance(space, spaces.Tuple):
        return all(map(is_numeric, space.spaces))
    return isinstance(space, spaces.Box | spaces.Discrete | spaces.MultiDiscrete | spaces.MultiBinary)


def _parts(space: spaces.Space) -> dict[str, spaces.Space]:
    """The sub-spaces of a Dict or Tuple space, in the order in which it is flattened."""
    if isinstance(space, spaces.Dict):
        return space.spaces
    return {str(i): part for i, part in enumerate(space)} if isinstance(space, spaces.Tuple) else {}


def images_in(space: spaces.Space, name: str = "") -> list[str]:
    """Names of the entries that are images, at any depth; nested ones are named `outer.inner`."""
    if name and is_image(space):
        return [name]
    return [
        image
        for key, part in _parts(space).items()
        for image in images_in(part, f"{name}.{key}" if name else key)
    ]


def pixels_of(space: spaces.Space) -> np.ndarray:
    """Mask of the positions of the flattened observation that belong to images."""
    parts = _parts(space)
    if parts:
        return np.concatenate([pixels_of(part) for part in parts.values()])
    return np.full(spaces.flatdim(space), is_image(space))


def refuse_images(whole: spaces.Space, images: list[str]) -> NoReturn:
    """Raise an error about images among vectors, with a --keep that would work."""
    names = whole.spaces if isinstance(whole, spaces.Dict) else {}
    vectors = [name for name, part in names.items() if is_numeric(part) and not images_in(part, name)]
    choices = [f"only the vectors, --keep {','.join(vectors)}"] if vectors else []
    choices += [f"only the image, --keep {images[0]}"] if images[0] in names else []
    advice = (
        f"keep {' or '.join(choices)}" if choices else "wrap the environment to give only vectors or images"
    )
    raise MulvError(
        f"the observation's entry {images[0]!r} is an image, and an image inside a {type(whole).__name__} "
        f"is not supported yet; {advice}"
    )
