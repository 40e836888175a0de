"""The Python interface of mulv, with Stable-Baselines3's names."""

import shutil
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Self

import gymnasium as gym
import jax
import numpy as np

from mulv.agents import algorithm
from mulv.agents import preset as named_preset
from mulv.core.errors import MulvError
from mulv.core.names import nearest
from mulv.core.spec import EnvSpec
from mulv.envs import Translation, adapt, env_spec, is_task
from mulv.run import checkpoint, compiled, seeding
from mulv.run.branch import branch
from mulv.run.compiled import Carry
from mulv.run.config import RunConfig, with_run_options
from mulv.run.diagnostics.video import Film
from mulv.run.directory import RunDirectory
from mulv.run.evaluation import Evaluation, Evaluator
from mulv.run.saves import write_save
from mulv.run.seeding import Stream
from mulv.run.train import complete, environment_of, train


class Learner:
    """An agent with its environment: learn, predict, evaluate, save.

    `env` is a task's name, a Gymnasium id, or an environment, which must be of Box, Dict or Discrete
    spaces. Further keywords are fields of the agent's configuration or of the run's; a group of options is a
    dictionary, `critic={"features": 512}`, or where there are several kinds also a name, `policy="ddpg"`.
    """

    algo: ClassVar[str]

    def __init__(self, env: str | gym.Env, *, preset: str = "default", seed: int = 0, **options: Any):
        agent = named_preset(self.algo, preset)
        known = [*RunConfig.__dataclass_fields__, *type(agent).__dataclass_fields__]
        for name in options:
            if name.partition(".")[0] not in known:
                near = nearest(name, known)
                raise MulvError(
                    f"{self.algo} has no option {name!r}" + (f"; did you mean {near!r}?" if near else "")
                )
        task = env if isinstance(env, str) else _name_of(env)
        config = with_run_options(RunConfig(task=task, algo=self.algo, agent=agent, seed=seed), options)
        self._set_up(config, None if isinstance(env, str) else env)
        self.state: compiled.Packed = compiled.init(self.agent, seeding.key(seed, Stream.INIT))

    def _set_up(self, config: RunConfig, env: gym.Env | None) -> None:
        self.config = config
        self.env_steps = 0
        self._earlier_steps = 0  # in `env_steps`: of runs of which only the weights were loaded
        self._own_env = env is None
        self._make: Callable[[], gym.Env]
        if env is None:
            self._make = environment_of(config)
        else:
            adapted = _Kept(adapt(env))
            self._make = lambda: adapted
        shown = self._make()
        self.spec = env_spec(shown)
        self._translation = (
            Translation.none() if env is None and is_task(config.task) else Translation.of(shown)
        )
        shown.close()
        self.agent = algorithm(config.algo).agent(config.agent, self.spec)
        self._calls = 0
        self._source: tuple[Path, int] | None = None  # a save or run, and which checkpoint of it was loaded
        self._directory: Path | None = None
        self._temporary = False  # whether `close` deletes `_directory`
        self._began = False  # whether `learn` has started a run in it

    def learn(
        self, total_timesteps: int, *, progress_bar: bool = False, run_directory: str | Path | None = None
    ) -> Self:
        """Train for `total_timesteps` more environment steps. Files stay in `run_directory`, if any.

        A loaded agent continues with the replay of its run, if that still exists. Otherwise it first collects
        new experience with its policy, without updates (`learning_starts`).
        """
        if total_timesteps < 0:
            raise MulvError(f"total_timesteps is {total_timesteps}; it must not be negative")
        if total_timesteps == 0:
            return self
        if self._directory is None:
            self._temporary = run_directory is None
            self._directory = Path(run_directory or tempfile.mkdtemp(prefix="mulv-"))
        directory = self._directory
        first = not RunDirectory(directory).config_file.exists() or not self._began
        config = self._run_config(self.env_steps - self._earlier_steps + total_timesteps)
        if not first:
            config = replace(config, eval_every=RunDirectory(directory).read_config().eval_every)
        elif self._source is not None:
            path, step = self._source
            if not _has_replay(path):
                self._earlier_steps = self.env_steps
                config = self._run_config(total_timesteps)
            branch(path, config, directory, at=step)
        make = None if self._own_env else self._make
        resume = not first or self._source is not None
        self._began = True
        outcome = train(config, directory, make=make, resume=resume, progress=progress_bar)
        self.state = outcome.state
        self.env_steps = self._earlier_steps + outcome.counters.env_steps
        return self

    def _run_config(self, total_steps: int) -> RunConfig:
        config = replace(self.config, total_steps=total_steps)
        if not self._own_env and config.eval_every is None:
            config = replace(config, eval_every=0)  # one environment cannot be trained and evaluated at once
        # No worker processes by default: each would start by running the caller's script again.
        config = replace(config, env_workers=bool(config.env_workers))
        return complete(config) if self._own_env else config

    def predict(
        self, obs: Any, memory: Carry | None = None, *, deterministic: bool = True
    ) -> tuple[np.ndarray, Carry]:
        """The action for one observation, and the memory to pass next time; no memory means a new episode.

        Observation and action are in the environment's own spaces. Those of mulv's tasks (`mulv.make_env`,
        `gym.make("mulv/…")`) are vectors or frames, and actions in [-1, 1].
        """
        obs = np.asarray(self._translation.observation(obs), self.spec.obs_dtype)
        if obs.shape != self.spec.obs_shape:
            raise MulvError(f"the observation has shape {obs.shape}; this agent's is {self.spec.obs_shape}")
        if not np.isfinite(obs).all():
            raise MulvError("the observation holds NaN or inf; look at what the environment or sensor gave")
        first = np.asarray([memory is None])
        carry = (
            compiled.init_carry(self.agent, 1) if memory is None else jax.tree.map(lambda m: m[None], memory)
        )
        key, self._calls = seeding.key(self.config.seed, Stream.ACT), self._calls + 1
        step = np.int32(self._calls)
        carry = compiled.act(
            self.agent, self.state, carry, obs[None], first, key, step, deterministic=deterministic
        )
        taken = np.asarray(carry.action[0])
        action = np.asarray(taken.argmax()) if self.spec.discrete else self._translation.action(taken)
        return action, jax.tree.map(lambda m: m[0], carry)

    def evaluate(
        self,
        *,
        episodes: int = 10,
        seed: int = 0,
        deterministic: bool = True,
        video: str | Path | None = None,
    ) -> Evaluation:
        """Evaluate in new environments; returns return, length and success of each episode.

        `video` is the path of a .gif or .mp4 of the first episode, for tasks with frames.
        """
        if not self._own_env:
            raise MulvError(
                "this agent was given an environment, not a name; use evaluate_policy(agent, make)"
            )
        options: dict[str, Any] = {"episodes": episodes, "seed": seed, "deterministic": deterministic}
        if video is None:
            return _evaluate(self, self._make, **options)
        film = Film(Path(video), self.spec)
        evaluation = _evaluate(self, self._make, **options, watch=film.add)
        film.write()
        return evaluation

    def save(self, directory: str | Path) -> Path:
        """Save configuration and parameters, without the replay; an agent saved there is replaced."""
        tree = compiled.unpack(self.agent, self.state)
        return write_save(Path(directory), self.config, tree, self.env_steps)

    def close(self) -> None:
        """Delete the files of `learn`, unless it was given a directory."""
        if self._directory is not None and self._temporary:
            shutil.rmtree(self._directory, ignore_errors=True)
            self._directory, self._temporary, self._began = None, False, False


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
    """Behaviour cloning of a dataset; train it with `mulv offline`, then `load` it here."""

    algo = "bc"


_LEARNERS: dict[str, type[Learner]] = {cls.algo: cls for cls in (MuLV, SAC, DrQV2, BC)}


def learner_class(algo: str) -> type[Learner]:
    """The learner class of an algorithm; a generic one if the algorithm has none here."""
    algorithm(algo)
    return _LEARNERS.get(algo) or type(algo, (Learner,), {"algo": algo})


def load(directory: str | Path, env: gym.Env | None = None) -> Learner:
    """Load a saved agent, or the newest checkpoint of a run."""
    run = RunDirectory(Path(directory))
    config = run.read_config()
    cls = learner_class(config.algo)
    learner = cls.__new__(cls)
    learner._set_up(config, env)
    like = compiled.unpack(learner.agent, compiled.init(learner.agent, seeding.key(0, Stream.INIT)))
    tree, meta, used = checkpoint.load_latest(run.checkpoints, like)
    learner.state, learner.env_steps = compiled.pack(tree), meta["counters"]["env_steps"]
    learner._source = run.path, int(used.name)
    return learner


def evaluate_policy(
    learner: Learner,
    make: Callable[[], gym.Env],
    *,
    episodes: int = 10,
    seed: int = 0,
    deterministic: bool = True,
) -> Evaluation:
    """Evaluate an agent in environments that `make` builds, which must have the agent's spaces."""
    return _evaluate(learner, lambda: _as_learned(make(), learner.spec), episodes, seed, deterministic)


def _evaluate(
    learner: Learner,
    make: Callable[[], gym.Env],
    episodes: int,
    seed: int,
    deterministic: bool,
    watch: Callable[[np.ndarray], None] = lambda o_h: None,
) -> Evaluation:
    if episodes < 1:
        raise MulvError(f"episodes is {episodes}; it must be at least 1")
    if seed < 0:
        raise MulvError(f"seed is {seed}; it must not be negative")
    evaluator = Evaluator(make, episodes=episodes, seed=seed)
    try:
        return evaluator(learner.agent, learner.state, deterministic=deterministic, watch=watch)
    finally:
        evaluator.close()


def _as_learned(env: gym.Env, spec: EnvSpec) -> gym.Env:
    """The environment wrapped as agents see it; an error if its shapes are not those of the agent."""
    adapted = adapt(env)
    if (found := env_spec(adapted)) != spec:
        raise MulvError(f"this agent learned from {spec}, and the environment to evaluate it in has {found}")
    return adapted


def _has_replay(path: Path) -> bool:
    return RunDirectory(path).replay.is_dir()


class _Kept(gym.Wrapper):
    """The caller's environment, which the training loop must not close."""

    def close(self) -> None:
        pass


def _name_of(env: gym.Env) -> str:
    return env.spec.id if env.spec is not None else type(env.unwrapped).__name__
