"""Files that are written whole or not at all."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def written_aside(path: Path) -> Iterator[Path]:
    """A path to write to, which takes the place of `path` at the end, or is removed where writing fails.

    The name keeps the ending, by which some writers choose the format.
    """
    aside = path.with_name(f".writing-{path.name}")
    try:
        yield aside
        os.replace(aside, path)
    except BaseException:
        aside.unlink(missing_ok=True)
        raise
