"""Settings of a run's process."""

import platform

import numpy as np
import psutil
import pytest

from mulv.run.runtime import give_back_memory

MB = 1_000_000


def own_mb() -> float:
    return psutil.Process().memory_info().rss / MB


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="of glibc's allocator")
def test_memory_of_arrays_that_are_gone_goes_back_to_the_system() -> None:
    give_back_memory()  # of tests before this one, which the arrays would lie in
    before = own_mb()
    arrays = [np.ones(60_000, np.uint8) for _ in range(3000)]  # too small to be mapped one by one
    del arrays[:-1]  # the last one keeps what lies below it from going back by itself
    kept = own_mb() - before
    give_back_memory()
    assert kept > 100
    assert own_mb() - before < kept / 4
