"""Shared settings: mulv before JAX (it sets XLA's flags), a compilation cache, strict promotion of ranks."""

from pathlib import Path

import mulv  # noqa: F401  isort: skip
import jax
from hypothesis import HealthCheck, settings

CACHE = Path(__file__).parents[1] / ".cache" / "jax"

jax.config.update("jax_compilation_cache_dir", str(CACHE))
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.2)
jax.config.update("jax_numpy_rank_promotion", "raise")
settings.register_profile("mulv", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("mulv")
