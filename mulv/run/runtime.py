"""Settings of the process that a run lives in."""

import os
from pathlib import Path

import jax


def use_compilation_cache() -> None:
    """Keep compiled programs between processes, so that a second start takes seconds less."""
    home = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    jax.config.update("jax_compilation_cache_dir", str(home / "mulv" / "jax"))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.5)
