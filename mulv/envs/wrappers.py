"""Wrappers between simulator and agent: hidden entries, flat float32 observations, actions in [-1, 1]."""

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.utils import RecordConstructorArgs

from mulv.core.errors import MulvError
from mulv.core.names import nearest
from mulv.envs.entries import images_in, is_numeric, pixels_of, refuse_images

SUCCESS = ("success", "is_success")  # keys of an environment's info
Keep = tuple[int, ...] | tuple[str, ...] | None


def parse_keep(text: str | None) -> Keep:
    """`--keep`'s value: positions such as `0-4,7`, or names such as `position,touch`."""
    if text is None:
        return None
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not parts:
        raise MulvError("--keep is empty; give positions such as 0-4,7 or names such as position,touch")
    if not all(part.replace("-", "").isdecimal() for part in parts):
        return tuple(parts)
    positions: list[int] = []
    for part in parts:
        first, _, last = part.partition("-")
        if not first.isdecimal() or (last and not last.isdecimal()) or (last and int(last) < int(first)):
            raise MulvError(f"--keep {part!r} is not a position or a range such as 0-4")
        positions += range(int(first), int(last or first) + 1)
    return tuple(positions)


class KeepImage(gym.ObservationWrapper, RecordConstructorArgs):
    """Keep only one entry of a dictionary, an image."""

    def __init__(self, env: gym.Env, name: str):
        RecordConstructorArgs.__init__(self, name=name)
        gym.ObservationWrapper.__init__(self, env)
        assert isinstance(env.observation_space, spaces.Dict)
        self._name = name
        self.observation_space = env.observation_space[name]

    def observation(self, observation: dict[str, Any]) -> Any:
        return observation[self._name]


class KeepObservation(gym.ObservationWrapper, RecordConstructorArgs):
    """Flatten the observation to a float32 vector and keep only the chosen entries.

    `hidden` holds the other entries of the newest observation. Agents never see them; the probe of
    evaluations predicts them.
    """

    def __init__(self, env: gym.Env, keep: Keep):
        RecordConstructorArgs.__init__(self, keep=keep)
        gym.ObservationWrapper.__init__(self, env)
        inner = env.observation_space
        if keep is not None and isinstance(keep[0], str):
            if not isinstance(inner, spaces.Dict):
                raise MulvError("--keep names entries, but this observation has no names: use positions")
            for name in keep:
                if name not in inner.spaces:
                    hint = nearest(str(name), inner.spaces)
                    there = f"did you mean {hint!r}?" if hint else f"there are: {', '.join(inner.spaces)}"
                    raise MulvError(f"the observation has no entry {name!r}; {there}")
            dropped = {
                name: space
                for name, space in inner.spaces.items()
                if name not in keep and not images_in(space, name)
            }
            inner = spaces.Dict({name: inner[name] for name in keep})
            numbers = bool(dropped) and all(map(is_numeric, dropped.values()))
            self._dropped = spaces.Dict(dropped) if numbers else None
            keep = None
        else:
            self._dropped = None
        self._chosen = inner
        if not is_numeric(inner):
            raise MulvError(
                f"observation space {inner} cannot be made a vector; use Box, Dict, Tuple or Discrete spaces"
            )
        flat = spaces.flatten_space(inner)
        assert isinstance(flat, spaces.Box)
        (size,) = flat.shape
        if keep is not None and max(keep) >= size:
            raise MulvError(f"--keep asks for position {max(keep)}, but the observation has {size} entries")
        self._positions = None if keep is None else np.asarray(keep, dtype=np.intp)
        images = images_in(inner)
        pixels = pixels_of(inner) if images else np.zeros(size, bool)
        if images and pixels[slice(None) if self._positions is None else self._positions].any():
            refuse_images(env.observation_space, images)
        self._rest = np.setdiff1d(np.flatnonzero(~pixels), np.asarray(keep or np.arange(size)))
        self.hidden = np.zeros(0, np.float32)
        low, high = (bound.astype(np.float32) for bound in (flat.low, flat.high))
        if self._positions is not None:
            low, high = low[self._positions], high[self._positions]
        self.observation_space = spaces.Box(low, high, dtype=np.float32)

    @property
    def kept(self) -> np.ndarray:
        """Positions of the kept entries in the whole flattened observation."""
        positions = self._positions_of(self._chosen)
        return positions if self._positions is None else positions[self._positions]

    @property
    def dropped(self) -> np.ndarray:
        """Positions of the entries of `hidden` in the whole flattened observation."""
        if self._dropped is not None:
            return self._positions_of(self._dropped)
        return self._rest if self._positions is not None else np.zeros(0, np.intp)

    def _positions_of(self, part: spaces.Space) -> np.ndarray:
        """Positions of a part of the observation in the whole flattened observation."""
        whole = self.env.observation_space
        positions = np.arange(spaces.flatdim(whole))
        if not (isinstance(whole, spaces.Dict) and isinstance(part, spaces.Dict)):
            return positions
        ends = np.cumsum([spaces.flatdim(space) for space in whole.spaces.values()])
        spans = dict(zip(whole.spaces, np.split(positions, ends[:-1]), strict=True))
        return np.concatenate([spans[name] for name in part.spaces])

    def observation(self, observation: Any) -> np.ndarray:
        if self._dropped is not None:
            rest = {name: observation[name] for name in self._dropped.spaces}
            self.hidden = np.asarray(spaces.flatten(self._dropped, rest), np.float32)
        if isinstance(self._chosen, spaces.Dict):
            observation = {name: observation[name] for name in self._chosen.spaces}
        vector = np.asarray(spaces.flatten(self._chosen, observation), dtype=np.float32)
        if self._positions is None:
            return vector
        self.hidden = vector[self._rest]
        return vector[self._positions]


class UnitAction(gym.ActionWrapper, RecordConstructorArgs):
    """Box actions in [-1, 1], scaled to the simulator's bounds and rounded if these are integers."""

    def __init__(self, env: gym.Env):
        RecordConstructorArgs.__init__(self)
        gym.ActionWrapper.__init__(self, env)
        inner = env.action_space
        assert isinstance(inner, spaces.Box)
        if not np.all(np.isfinite(inner.low) & np.isfinite(inner.high)):
            raise MulvError(
                f"action space {inner} is unbounded; wrap the environment to give it finite bounds"
            )
        if len(inner.shape) != 1:
            raise MulvError(f"action space {inner} is not a vector; wrap the environment to flatten it")
        self._centre = ((inner.high + inner.low) / 2).astype(np.float32)
        self._half = ((inner.high - inner.low) / 2).astype(np.float32)
        self._low, self._high = inner.low, inner.high
        self._whole = np.issubdtype(inner.dtype, np.integer)
        self.action_space = spaces.Box(-1.0, 1.0, inner.shape, np.float32)

    def action(self, action: np.ndarray) -> np.ndarray:
        # Floating-point error may leave the box by one unit in the last place, which some simulators refuse.
        scaled = self._centre + self._half * np.asarray(action, np.float32)
        if self._whole:
            scaled = np.rint(scaled)
        return np.clip(scaled, self._low, self._high).astype(self._low.dtype)

    def unit(self, actions: np.ndarray) -> np.ndarray:
        """The inverse of `action`: simulator actions scaled to [-1, 1]."""
        return np.clip((np.asarray(actions, np.float32) - self._centre) / self._half, -1.0, 1.0)


class ActionRepeat(gym.Wrapper, RecordConstructorArgs):
    """Take each action several times and sum the rewards; success at any of these steps is success."""

    def __init__(self, env: gym.Env, times: int):
        RecordConstructorArgs.__init__(self, times=times)
        gym.Wrapper.__init__(self, env)
        self._times = times

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        total, succeeded = 0.0, dict[str, bool]()
        for _ in range(self._times):
            obs, reward, terminated, truncated, info = self.env.step(action)
            total += float(reward)
            for key in SUCCESS:
                if key in info:
                    succeeded[key] = succeeded.get(key, False) or bool(info[key])
            if terminated or truncated:
                break
        return obs, total, terminated, truncated, info | succeeded
