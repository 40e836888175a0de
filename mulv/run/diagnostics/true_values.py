"""True Q^π(x, a) by simulation: restore the simulator's state, take the action, then follow the policy.

States are taken from episodes of the exploring policy. At each, several actions are tried, and after each of
them the policy acts without noise, with its memory of the episode. All of this is deterministic, so one
rollout gives the exact discounted return up to the rewards after its last step. Contacts make this return a
rough function of the action, which no network can fit exactly. So every action is tried several times with
small perturbations, and critics are compared with the mean of these returns. Their variance limits how well
any smooth critic can agree (`critic_agreement.ceiling`).
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium as gym
import jax
import numpy as np
from jaxtyping import PRNGKeyArray

from mulv.agents.base import AbstractAgent
from mulv.core.errors import MulvError
from mulv.data.files import written_aside
from mulv.envs import env_spec
from mulv.envs.simulator_state import SimulatorState, lift_time_limits, restore_state, save_state
from mulv.run import compiled, seeding
from mulv.run.compiled import Carry
from mulv.run.seeding import Stream

UNSEEN = 0.02  # largest share of the return (of constant rewards) that may come after a rollout's last step


@dataclass(frozen=True)
class TruthOptions:
    """Where and how long true values are measured."""

    states: int = 96
    """States."""
    every: int = 50
    """Decisions from one of them to the next."""
    actions: int = 9
    """Actions tried at each: the policy's own, and others near it."""
    deviation: float = 0.3
    """Standard deviation of the noise that makes the others."""
    repeats: int = 4
    """Times each action is tried."""
    nearby: float = 0.01
    """Standard deviation of the noise that moves it, at all times but the first."""
    horizon: int = 500
    """Decisions that are followed."""
    seed: int = 0
    """Of episodes and noise."""

    def __post_init__(self) -> None:
        if min(self.states, self.every, self.repeats, self.horizon) < 1 or self.actions < 2:
            raise MulvError("true values need a state, a step, and two actions to compare")


class TrueValues(NamedTuple):
    """The rewards after each tried action, and the episodes that the states are taken from.

    As in a replay, a row of `obs`, `past_actions` and `past_rewards` is an observation, and the action and
    reward before it.
    """

    obs: np.ndarray  # episode, time, obs: as the policy sees them, zero after the episode's end
    past_actions: np.ndarray  # episode, time, act
    past_rewards: np.ndarray  # episode, time
    episode: np.ndarray  # state: index of its episode
    time: np.ndarray  # state: step in that episode
    tried: np.ndarray  # state, action, act; the first is the policy's own
    rewards: np.ndarray  # state, action, repeat, horizon; zero after a termination

    def returns(self, gamma: float) -> np.ndarray:
        """Q^π(x, a) of each state, action and repeat."""
        return discounted(self.rewards, gamma)

    def save(self, path: Path, options: TruthOptions) -> None:
        with written_aside(path) as aside, aside.open("wb") as file:
            np.savez(file, **self._asdict(), **{f"option_{k}": v for k, v in asdict(options).items()})

    @staticmethod
    def load(path: Path, options: TruthOptions) -> "TrueValues":
        """Read what `save` wrote; an error if it was measured with other options."""
        with np.load(path) as saved:
            found = {name: saved[f"option_{name}"].item() for name in asdict(options)}
            if found != asdict(options):
                raise MulvError(f"{path} was measured with {found}; give these options, or another file")
            return TrueValues(*(saved[name] for name in TrueValues._fields))


def discounted(rewards: np.ndarray, gamma: float) -> np.ndarray:
    """Σ γ^i r_{h+i} over the last axis; an error if that axis is too short for the discount."""
    horizon = rewards.shape[-1]
    if gamma**horizon > UNSEEN:
        enough = int(np.ceil(np.log(UNSEEN) / np.log(gamma))) if gamma < 1 else None
        advice = "a discount below 1" if enough is None else f"a horizon of {enough}"
        raise MulvError(
            f"{horizon} decisions say too little of returns with discount {gamma:g}: use {advice}"
        )
    return rewards.astype(np.float64) @ gamma ** np.arange(horizon)


@dataclass
class _Start:
    """A state to try actions at."""

    episode: int
    time: int
    simulator: SimulatorState
    carry: Carry  # of one environment: the policy's memory, and its action without noise


def measure_true_values(
    agent: AbstractAgent,
    state: compiled.Packed,
    make: Callable[[], gym.Env],
    options: TruthOptions,
    say: Callable[[int], None] = lambda done: None,
) -> TrueValues:
    """Measure true values of an agent's policy; `say` is called with the number of states done."""
    lanes = [make() for _ in range(options.actions * options.repeats)]
    spec = env_spec(lanes[0])
    spec.require_continuous("a measurement of true values")
    try:
        for env in lanes:
            env.reset(seed=0)
            lift_time_limits(env)
        starts, episodes = _find_starts(agent, state, make, options)
        rng = seeding.generator(options.seed, Stream.WARM_UP)
        key = seeding.key(options.seed, Stream.EVAL_ACT)
        tried, rewards = [], []
        for start in starts:
            own = np.asarray(start.carry.action)
            noise = options.deviation * rng.normal(size=(options.actions, spec.act_dim))
            noise[0] = 0
            actions = np.clip(own + noise, -1, 1).astype(np.float32)
            moves = options.nearby * rng.normal(size=(options.actions, options.repeats, spec.act_dim))
            moves[:, 0] = 0
            moved = np.clip(actions[:, None] + moves, -1, 1).astype(np.float32)
            followed = _follow(
                agent, state, lanes, start, moved.reshape(-1, spec.act_dim), options.horizon, key
            )
            tried.append(actions)
            rewards.append(followed.reshape(options.actions, options.repeats, options.horizon))
            say(len(tried))
    finally:
        for env in lanes:
            env.close()
    return TrueValues(
        obs=_padded([obs for obs, _, _ in episodes]),
        past_actions=_padded([actions for _, actions, _ in episodes]),
        past_rewards=_padded([rewards for _, _, rewards in episodes]),
        episode=np.asarray([start.episode for start in starts]),
        time=np.asarray([start.time for start in starts]),
        tried=np.stack(tried),
        rewards=np.stack(rewards),
    )


def _find_starts(
    agent: AbstractAgent, state: compiled.Packed, make: Callable[[], gym.Env], options: TruthOptions
) -> tuple[list[_Start], list[tuple[np.ndarray, ...]]]:
    """States along episodes of the policy with its exploration noise, and these episodes."""
    starts: list[_Start] = []
    episodes: list[tuple[np.ndarray, ...]] = []
    key, step = seeding.key(options.seed, Stream.ACT), 0
    rng = seeding.generator(options.seed, Stream.ENV)
    env = make()
    try:
        while len(starts) < options.states:
            obs, _ = env.reset(seed=seeding.integer(options.seed, Stream.ENV, len(episodes)))
            carry = compiled.init_carry(agent, 1)
            seen, taken, paid, ended = [obs], [np.zeros(agent.spec.act_dim, np.float32)], [0.0], False
            next_start = int(rng.integers(options.every))  # other steps in every episode
            while not ended and len(starts) < options.states:
                now = (np.asarray(obs)[None], np.asarray([len(seen) == 1]), key, np.int32(step))
                if len(seen) > next_start:
                    quiet = compiled.act(agent, state, carry, *now, deterministic=True)
                    starts.append(_Start(len(episodes), len(seen) - 1, save_state(env), quiet))
                    next_start += options.every
                carry = compiled.act(agent, state, carry, *now, deterministic=False)
                action = np.asarray(carry.action[0])
                obs, reward, terminated, truncated, _ = env.step(action)
                seen.append(obs)
                taken.append(action)
                paid.append(float(reward))
                ended, step = terminated or truncated, step + 1
            episodes.append((np.stack(seen), np.stack(taken), np.asarray(paid, np.float32)))
    finally:
        env.close()
    return starts, episodes


def _follow(
    agent: AbstractAgent,
    state: compiled.Packed,
    lanes: list[gym.Env],
    start: _Start,
    actions: np.ndarray,
    horizon: int,
    key: PRNGKeyArray,
) -> np.ndarray:
    """The rewards after each action. Environment i of `lanes` takes action i, then the policy acts in all."""
    for env in lanes:
        restore_state(env, start.simulator)
    memory = jax.tree.map(lambda leaf: np.repeat(np.asarray(leaf), len(lanes), axis=0), start.carry.memory)
    carry = Carry(memory, actions)  # type: ignore[arg-type]
    rewards = np.zeros((len(lanes), horizon), np.float32)
    obs = np.zeros((len(lanes), *agent.spec.obs_shape), np.float32)
    first, running = np.zeros(len(lanes), bool), set(range(len(lanes)))
    for step in range(horizon):
        taken: Any = np.asarray(carry.action)
        for lane in tuple(running):
            obs[lane], rewards[lane, step], terminated, _, _ = lanes[lane].step(taken[lane])
            if terminated:
                running.remove(lane)
        if not running:
            break
        carry = compiled.act(agent, state, carry, obs, first, key, np.int32(step), deterministic=True)
    return rewards


def _padded(episodes: list[np.ndarray]) -> np.ndarray:
    longest = max(map(len, episodes))
    return np.stack([np.pad(e, [(0, longest - len(e))] + [(0, 0)] * (e.ndim - 1)) for e in episodes])
