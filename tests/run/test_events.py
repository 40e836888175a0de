"""A full disk ends logging with an error; it must not wait for somebody to read a queue."""

import contextlib
import errno
from pathlib import Path

import pytest

from mulv.run.events import EventFile


def test_a_full_disk_is_an_error_and_not_a_hang(small_disk: Path) -> None:
    events = EventFile(small_disk / "tensorboard")
    events.add({"train/loss": 1.0}, step=1)
    with contextlib.suppress(OSError), (small_disk / "ballast").open("wb", buffering=0) as ballast:
        while True:
            ballast.write(bytes(512))
    many = {f"train/loss_{i}": 1.0 for i in range(1000)}  # more than fits the last page
    with pytest.raises(OSError, match="No space left") as error:
        events.add(many, step=2)
    assert error.value.errno == errno.ENOSPC
    (small_disk / "ballast").unlink()
    events.close()
