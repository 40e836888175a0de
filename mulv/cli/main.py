"""The entry point: runs a command, and prints an error as one line."""

import errno
import importlib
import os
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path

from mulv.core.errors import EnvironmentFault, MulvError
from mulv.core.names import lookup

USAGE = """\
usage: mulv COMMAND [OPTIONS]

commands:
  train   train an agent, or take up a run again (--resume RUN)
  offline learn from a dataset alone, or collect one (--collect KIND)
  eval    evaluate a run's newest checkpoint
  compare draw the learning curves of runs in one picture
  bench   run a suite of tasks, methods and seeds (--list shows them)
  report  one HTML page of all results under a directory
  memory  say how long a memory a task needs, by regression on windows of each length
  envs    list the tasks
  doctor  say what can draw frames on this machine, and how fast
  theory  of a known POMDP: theory check FILE-or-NAME tries the paper's claims, theory solve plans,
          theory regret lock learns it by Algorithm 1 with exact regret

mulv COMMAND --help lists a command's options.
"""

# Modules are imported when needed, so that `mulv envs` does not wait for JAX.
COMMANDS = {
    "train": "train",
    "offline": "offline",
    "eval": "evaluate",
    "compare": "compare",
    "bench": "bench",
    "report": "report",
    "memory": "memory",
    "envs": "envs",
    "doctor": "doctor",
    "theory": "theory",
}
FULL_DISK = (errno.ENOSPC, errno.EDQUOT)
BAD_PATH = (
    errno.EACCES,
    errno.EPERM,
    errno.ENOTDIR,
    errno.EISDIR,
    errno.EEXIST,
    errno.ENOENT,
    errno.ENAMETOOLONG,
)


def main(argv: Sequence[str] | None = None) -> None:
    """Run a command and exit; an error is one line on stderr and a non-zero exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if not arguments or arguments[0] in ("-h", "--help"):
        print(USAGE, end="")
        sys.exit(0 if arguments else 2)
    name, rest = arguments[0], arguments[1:]
    try:
        module = importlib.import_module(f"mulv.cli.{lookup('command', name, COMMANDS)}")
        code = module.run(rest)
    except MulvError as error:
        if isinstance(error, EnvironmentFault) and error.__cause__ is not None:
            traceback.print_exception(error.__cause__)
        code = _fail(str(error))
    except BrokenPipeError:  # the reader of the output, such as `head`, has closed it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 0
    except OSError as error:
        if (reason := _reason(error, rest)) is None:
            raise
        code = _fail(reason)
    except KeyboardInterrupt:
        code = 130
    sys.exit(code)


def _fail(message: str) -> int:
    print(f"mulv: error: {message}", file=sys.stderr)
    return 1


def _reason(error: OSError, arguments: Sequence[str]) -> str | None:
    """The message for a full disk or a bad path in the arguments; None for other errors, which are bugs."""
    where = error.filename or error
    if error.errno in FULL_DISK:
        return f"the disk is full ({where}); free some space and --resume the run"
    if error.errno == errno.EROFS:
        return f"{where} is on a disk that is read-only; choose another path"
    if error.errno in BAD_PATH and error.filename is not None and _is_named(str(error.filename), arguments):
        return f"{where}: {error.strerror}; choose another path"
    return None


def _is_named(file: str, arguments: Sequence[str]) -> bool:
    """Whether a file is at a path given in the arguments, or at a default, which is relative.

    It may be that path, inside of it, above it, or beside it, as temporary files are.
    """
    path = Path(file)
    named = [Path(argument.rpartition("=")[2]) for argument in arguments]
    return not path.is_absolute() or any(
        path.is_relative_to(name) or name.is_relative_to(path) or path.parent == name.parent
        for name in named
        if name.is_absolute()
    )
