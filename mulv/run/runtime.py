"""Settings of the process that a run lives in."""

import ctypes
import os
import sys
from pathlib import Path

import jax


def use_compilation_cache() -> None:
    """Keep compiled programs between processes, so that a second start takes seconds less."""
    home = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    jax.config.update("jax_compilation_cache_dir", str(home / "mulv" / "jax"))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.5)


def give_back_memory() -> None:
    """What the allocator keeps of arrays that are gone: glibc's would keep more and more of it over a run."""
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", lambda _: None)  # musl has none
        trim(0)
