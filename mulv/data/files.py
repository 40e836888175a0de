"""Atomic writing of files."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def written_aside(path: Path) -> Iterator[Path]:
    """A temporary path to write to, which replaces `path` at the end, or is removed on an error.

    Its name has the same extension, from which some writers choose the format.
    """
    aside = path.with_name(f".writing-{path.name}")
    try:
        yield aside
        os.replace(aside, path)
    except BaseException:
        aside.unlink(missing_ok=True)
        raise
