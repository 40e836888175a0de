"""Shared settings: quick compilation, and kept; strict promotion of ranks; a disk small enough to fill."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import jax
import pytest
from hypothesis import HealthCheck, settings

CACHE = Path(__file__).parents[1] / ".cache"

# In the environment too: the commands that tests start compile as quickly, and share what is compiled.
# Without the newer emitters of fused loops an update compiles in less than half the time.
os.environ |= {
    "JAX_DISABLE_MOST_OPTIMIZATIONS": "1",
    "XDG_CACHE_HOME": str(CACHE),
    "XLA_FLAGS": f"{os.environ.get('XLA_FLAGS', '')} --xla_cpu_use_fusion_emitters=false".strip(),
}
jax.config.update("jax_disable_most_optimizations", True)  # tests compile much and compute little
jax.config.update("jax_compilation_cache_dir", str(CACHE / "mulv" / "jax"))
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.2)
jax.config.update("jax_numpy_rank_promotion", "raise")
settings.register_profile("mulv", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("mulv")


@pytest.fixture(scope="module")
def plain_convolutions() -> Iterator[None]:
    """Convolutions as XLA has them: they compile in a quarter of the time; tests/nets compares both ways."""
    from mulv.nets import conv

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(conv, "device_method", lambda: "plain")
        yield


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A real file system of one megabyte."""
    disk = tmp_path / "disk"
    disk.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(disk)]
    if subprocess.run(command, capture_output=True).returncode:
        pytest.skip("mounting a small file system needs root")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)
