"""The library as a person uses it from Python, after Stable-Baselines3's manners."""

import shutil
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Self

import gymnasium as gym
import jax
import numpy as np

from mulv.agents import ALGORITHMS, algorithm
from mulv.agents import preset as named_preset
from mulv.core.errors import MulvError
from mulv.core.names import nearest
from mulv.core.window import AbstractMemory
from mulv.envs import adapt, env_spec
from mulv.run import checkpoint, compiled, seeding
from mulv.run.config import RunConfig
from mulv.run.directory import RunDirectory
from mulv.run.evaluation import Evaluation, Evaluator
from mulv.run.seeding import Stream
from mulv.run.train import complete, environment_of, train
from mulv.run.video import Film


class Learner:
    """An agent with its environment: learn, predict, evaluate, save.

    `env` is a task's name, a Gymnasium id, or an environment, which must be of Box, Dict or Discrete
    spaces. Further keywords are fields of the agent's configuration or of the run's.
    """

    algo: ClassVar[str]

    def __init__(self, env: str | gym.Env, *, preset: str = "default", seed: int = 0, **options: Any):
        agent = named_preset(self.algo, preset)
        agent_options = {name: options.pop(name) for name in list(options) if hasattr(agent, name)}
        fields = RunConfig.__dataclass_fields__
        for name in options:
            if name not in fields:
                near = nearest(name, [*fields, *type(agent).__dataclass_fields__])
                raise MulvError(
                    f"{self.algo} has no option {name!r}" + (f"; did you mean {near!r}?" if near else "")
                )
        task = env if isinstance(env, str) else _name_of(env)
        config = RunConfig(
            task=task, algo=self.algo, agent=replace(agent, **agent_options), seed=seed, **options
        )
        self._set_up(config, None if isinstance(env, str) else env)
        self.state: compiled.Packed = compiled.init(self.agent, seeding.key(seed, Stream.INIT))
        self.env_steps = 0

    def _set_up(self, config: RunConfig, env: gym.Env | None) -> None:
        self.config = config
        self._make: Callable[[], gym.Env]
        if env is None:
            self._make = environment_of(config)
        else:
            adapted = _Kept(adapt(env))
            self._make = lambda: adapted
        self.spec = env_spec(self._make())
        self.agent = algorithm(config.algo).agent(config.agent, self.spec)
        self._calls = 0
        self._directory: Path | None = None
        self._own_env = env is None

    def learn(
        self, total_timesteps: int, *, progress_bar: bool = False, run_directory: str | Path | None = None
    ) -> Self:
        """Train for so many further environment steps; their record stays in `run_directory`, if given."""
        first = self._directory is None
        if first:
            self._directory = Path(run_directory or tempfile.mkdtemp(prefix="mulv-"))
        assert self._directory is not None
        config = replace(self.config, total_steps=self.env_steps + total_timesteps)
        if not self._own_env and config.eval_every is None:
            config = replace(config, eval_every=0)  # one environment cannot be trained and evaluated at once
        if not first:
            config = replace(config, eval_every=RunDirectory(self._directory).read_config().eval_every)
        make = None if self._own_env else self._make
        # A process of an environment's own would begin by running the caller's script again.
        config = replace(config, env_workers=bool(config.env_workers))
        config = complete(config) if self._own_env else config
        outcome = train(config, self._directory, make=make, resume=not first, progress=progress_bar)
        self._restore(outcome.directory)
        return self

    def _restore(self, directory: Path) -> None:
        like = compiled.unpack(self.agent, compiled.init(self.agent, seeding.key(0, Stream.INIT)))
        tree, meta, _ = checkpoint.load_latest(RunDirectory(directory).checkpoints, like)
        self.state, self.env_steps = compiled.pack(tree), meta["counters"]["env_steps"]

    def predict(
        self, obs: np.ndarray, memory: AbstractMemory | None = None, *, deterministic: bool = True
    ) -> tuple[np.ndarray, AbstractMemory]:
        """The action for one observation, in [-1, 1] or an index, and the memory to hand in next time.

        Without a memory an episode begins.
        """
        obs = np.asarray(obs, self.spec.obs_dtype)
        if obs.shape != self.spec.obs_shape:
            raise MulvError(f"the observation has shape {obs.shape}; this agent's is {self.spec.obs_shape}")
        first = np.asarray([memory is None])
        lanes = (
            compiled.init_memory(self.agent, 1) if memory is None else jax.tree.map(lambda m: m[None], memory)
        )
        key, self._calls = seeding.key(self.config.seed, Stream.ACT), self._calls + 1
        actions, lanes = compiled.act(
            self.agent,
            self.state,
            lanes,
            obs[None],
            first,
            key,
            np.int32(self._calls),
            octaves=0 if deterministic else 1,
        )
        action = np.asarray(actions[0])
        return (np.asarray(action.argmax()) if self.spec.discrete else action), jax.tree.map(
            lambda m: m[0], lanes
        )

    def evaluate(
        self,
        *,
        episodes: int = 10,
        seed: int = 0,
        deterministic: bool = True,
        video: str | Path | None = None,
    ) -> Evaluation:
        """Whole episodes in fresh environments, each one's return, length and success.

        `video` is a .gif or .mp4 to write the first of them to, where the task shows frames.
        """
        if not self._own_env:
            raise MulvError(
                "this agent was given an environment, not a name; use evaluate_policy(agent, make)"
            )
        options: dict[str, Any] = {"episodes": episodes, "seed": seed, "deterministic": deterministic}
        if video is None:
            return evaluate_policy(self, self._make, **options)
        film = Film(Path(video), self.spec)
        evaluation = evaluate_policy(self, self._make, **options, watch=film.add)
        film.write()
        return evaluation

    def save(self, directory: str | Path) -> Path:
        """Write the agent: configuration and parameters. The replay stays with the run."""
        run = RunDirectory(Path(directory))
        with run:
            run.write_config(self.config)
            tree, meta = compiled.unpack(self.agent, self.state), {"counters": {"env_steps": self.env_steps}}
            checkpoint.save(run.checkpoints, self.env_steps, tree, meta, keep=1)
        return run.path

    def close(self) -> None:
        """Delete the temporary record of `learn`, if it was not given a directory."""
        if self._directory is not None and self._directory.name.startswith("mulv-"):
            shutil.rmtree(self._directory, ignore_errors=True)
            self._directory = None


class MuLV(Learner):
    """µLV-Rep: a latent variable representation of the window, and a critic that is linear in it."""

    algo = "mulv"


class SAC(Learner):
    """SAC-MLP: soft actor-critic on the concatenated window."""

    algo = "sac"


class DrQV2(Learner):
    """DrQ-v2: DDPG on stacked, shifted frames."""

    algo = "drqv2"


class BC(Learner):
    """Behaviour cloning of a dataset; trained by `mulv offline`, taken up here by `load`."""

    algo = "bc"


_LEARNERS: dict[str, type[Learner]] = {cls.algo: cls for cls in (MuLV, SAC, DrQV2, BC)}
assert _LEARNERS.keys() == ALGORITHMS.keys()


def load(directory: str | Path, env: gym.Env | None = None) -> Learner:
    """An agent as it was saved, or as the newest checkpoint of a run has it."""
    run = RunDirectory(Path(directory))
    config = run.read_config()
    cls = _LEARNERS[config.algo]
    learner = cls.__new__(cls)
    learner._set_up(config, env)
    learner._restore(run.path)
    return learner


def evaluate_policy(
    learner: Learner,
    make: Callable[[], gym.Env],
    *,
    episodes: int = 10,
    seed: int = 0,
    deterministic: bool = True,
    watch: Callable[[np.ndarray], None] = lambda o_h: None,
) -> Evaluation:
    """Evaluate an agent in environments that `make` builds; `watch` is shown the first episode."""
    evaluator = Evaluator(make, episodes=episodes, seed=seed)
    try:
        return evaluator(learner.agent, learner.state, deterministic=deterministic, watch=watch)
    finally:
        evaluator.close()


class _Kept(gym.Wrapper):
    """The caller's environment: the loop may close its lanes, but this one is not the loop's."""

    def close(self) -> None:
        pass


def _name_of(env: gym.Env) -> str:
    return env.spec.id if env.spec is not None else type(env.unwrapped).__name__
