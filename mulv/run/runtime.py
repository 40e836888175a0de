"""Settings of the process that a run uses."""

import ctypes
import os
import sys
from pathlib import Path

import jax


def use_compilation_cache() -> None:
    """Cache compiled programs on disk, so that the next process starts seconds faster."""
    home = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    jax.config.update("jax_compilation_cache_dir", str(home / "mulv" / "jax"))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.5)


def give_back_memory() -> None:
    """Return freed memory to the system: glibc's allocator would keep more and more of it over a run."""
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", lambda _: None)  # musl has none
        trim(0)
