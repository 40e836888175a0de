"""The POMDP a person means by what was typed."""

from pathlib import Path

from mulv.tabular.files import read_pomdp
from mulv.tabular.pomdp import POMDP
from mulv.tabular.zoo import make

FILES = (".pomdp", ".pomdpx")


def find_pomdp(file_or_name: str) -> POMDP:
    """A file, if it is there or is called like one; else one of the zoo."""
    path = Path(file_or_name)
    is_file = path.is_file() or path.suffix.lower() in FILES
    return read_pomdp(path) if is_file else make(file_or_name)
