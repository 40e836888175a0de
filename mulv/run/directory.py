"""A run's directory: the paths of its files, and a lock that admits only one process.

config.json        the resolved configuration, versions, commit
metrics.jsonl      training metrics, one line per log interval
evaluations.jsonl  every evaluation: each episode's return, length, success
evaluations.npz    the same under Stable-Baselines3's keys
tensorboard/       the same as TensorBoard events
replay/            the experience, memory-mapped
checkpoints/       the newest checkpoints
reconstructions/   frames and their reconstructions, one picture per evaluation, of agents with an image VAE
latent_projection.npz   transitions of the replay in the latent space (--latent-projection)
origin.json        which run it was branched from, and at which step
initial/           the initial weights, if they are those of another run
result.json        the result line, once the run is finished
"""

import ast
import fcntl
import functools
import hashlib
import importlib.metadata
import importlib.util
import json
import os
import platform
import subprocess
from pathlib import Path
from typing import IO, Self

from mulv.core.errors import BusyError, MulvError
from mulv.data.files import written_aside
from mulv.run.config import RunConfig, from_json, to_json

PACKAGE = Path(__file__).resolve().parents[1]
DECISIVE = ("core", "nets", "data", "envs", "agents", "run")  # packages that decide a run's outcome
PACKAGES = ("mulv", "jax", "jaxlib", "equinox", "optax", "numpy", "gymnasium", "mujoco", "dm_control")
EXTRAS = ("metaworld",)
UNKNOWN = "unknown"  # recorded as commit if the code is not in mulv's own git repository


class RunDirectory:
    """The paths of a run, and the lock that keeps other processes from writing to it."""

    def __init__(self, path: Path):
        self.path = path
        self._lock: IO[str] | None = None

    @property
    def replay(self) -> Path:
        return self.path / "replay"

    @property
    def checkpoints(self) -> Path:
        return self.path / "checkpoints"

    @property
    def config_file(self) -> Path:
        return self.path / "config.json"

    @property
    def initial(self) -> Path:
        """The checkpoint with the initial weights, if they are those of another run."""
        return self.path / "initial"

    @property
    def origin_file(self) -> Path:
        """Records which run this one was branched from, if any."""
        return self.path / "origin.json"

    @property
    def dataset_file(self) -> Path:
        """Records the dataset that the replay began with, if any."""
        return self.path / "dataset.json"

    def __enter__(self) -> Self:
        """Take the lock; the kernel releases it however the process ends."""
        self.path.mkdir(parents=True, exist_ok=True)
        lock = (self.path / "lock").open("a+")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            lock.seek(0)
            holder = lock.read().strip() or "unknown"
            lock.close()
            raise BusyError(f"{self.path} is in use by another process (pid {holder})") from error
        lock.truncate(0)
        lock.write(str(os.getpid()))
        lock.flush()
        self._lock = lock
        return self

    def __exit__(self, *exception: object) -> None:
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def write_config(self, config: RunConfig) -> None:
        """Save the configuration, the commit and the versions of packages."""
        record = {"config": to_json(config), "commit": commit(), "versions": versions()}
        with written_aside(self.config_file) as aside:
            aside.write_text(json.dumps(record, indent=2))

    def read_config(self) -> RunConfig:
        """The configuration the run was started with."""
        try:
            record = json.loads(self.config_file.read_text())
            if not isinstance(record, dict) or "config" not in record:
                raise MulvError("it is no record of a run: there is no config in it")
            return from_json(record["config"])
        except FileNotFoundError:
            raise MulvError(f"{self.path} is not a run directory: it has no config.json") from None
        except NotADirectoryError:
            raise MulvError(f"{self.path} is a file, not a run directory") from None
        except (MulvError, ValueError, RecursionError) as error:
            reason = "it nests too deeply" if isinstance(error, RecursionError) else error
            raise MulvError(f"{self.config_file} cannot be read: {reason}") from error


def new_directory(root: Path, config: RunConfig) -> Path:
    """A path for a new run that does not exist yet."""
    base = root / config.task.replace("/", "-") / config.algo
    for number in range(1, 10_000):
        path = base / (f"seed-{config.seed}" + (f"-{number}" if number > 1 else ""))
        if not path.exists():
            return path
    raise MulvError(f"{base} is full of runs; choose another --out")


def versions() -> dict[str, str]:
    """Versions of Python and of the packages that results depend on."""
    found = [*PACKAGES, *(name for name in EXTRAS if importlib.util.find_spec(name))]
    return {"python": platform.python_version()} | {p: importlib.metadata.version(p) for p in found}


@functools.cache
def commit(root: Path = PACKAGE.parent) -> str:
    """The git commit of the running code, with `-modified` if files differ from it; cached at the first call.

    `UNKNOWN` if mulv is not in its own repository, for instance if it is installed inside another project's.
    """
    # Inside a git hook these variables would point to the hook's repository.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}

    def git(*arguments: str) -> str:
        return subprocess.run(
            ["git", "-C", str(root), *arguments], capture_output=True, text=True, check=True, env=environment
        ).stdout.strip()

    try:
        if Path(git("rev-parse", "--show-toplevel")).resolve() != root.resolve():
            return UNKNOWN
        return git("rev-parse", "HEAD") + ("-modified" if git("status", "--porcelain", "--", "mulv") else "")
    except (OSError, subprocess.CalledProcessError):
        return UNKNOWN


@functools.cache
def code_version(root: Path = PACKAGE) -> str:
    """A short hash of the code that decides a run's outcome; comments and docstrings do not change it."""
    digest = hashlib.sha256()
    for path in sorted(path for room in DECISIVE for path in (root / room).rglob("*.py")):
        tree = ast.parse(path.read_bytes())
        for node in ast.walk(tree):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node):
                node.body[0] = ast.Pass()
        digest.update(f"{path.relative_to(root)}\n{ast.unparse(tree)}\n".encode())
    return digest.hexdigest()[:12]
