"""POMDPs in files: Cassandra's `.pomdp`, read and written; POMDPX, read. Alpha vectors, both."""

from pathlib import Path

from mulv.core.errors import MulvError
from mulv.tabular.files.alpha import AlphaVectors, read_alpha, write_alpha
from mulv.tabular.files.cassandra import parse_cassandra
from mulv.tabular.files.lexer import FileError
from mulv.tabular.files.pomdpx import parse_pomdpx
from mulv.tabular.files.writer import format_cassandra
from mulv.tabular.pomdp import POMDP

__all__ = [
    "AlphaVectors",
    "FileError",
    "format_cassandra",
    "parse_cassandra",
    "parse_pomdpx",
    "read_alpha",
    "read_pomdp",
    "write_alpha",
    "write_pomdp",
]


def read_pomdp(path: str | Path) -> POMDP:
    """The POMDP in a file: POMDPX if it is called so, else Cassandra's format."""
    path = Path(path)
    try:
        text = path.read_bytes().decode("utf-8", errors="replace")  # old comments are in any encoding
    except OSError as error:
        raise MulvError(f"{path} cannot be read: {error.strerror}") from error
    return (parse_pomdpx if path.suffix.lower() == ".pomdpx" else parse_cassandra)(text, str(path))


def write_pomdp(pomdp: POMDP, path: str | Path) -> Path:
    """Write Cassandra's format."""
    path = Path(path)
    try:
        path.write_text(format_cassandra(pomdp), encoding="utf-8")
    except OSError as error:
        raise MulvError(f"{path} cannot be written: {error.strerror}") from error
    return path
