"""A POMDP in Cassandra's format, to the last digit."""

from collections.abc import Iterator

from scipy.sparse import csr_array

from mulv.core.errors import MulvError
from mulv.tabular.files.lexer import KEYWORDS, NAME
from mulv.tabular.pomdp import POMDP


def format_cassandra(pomdp: POMDP) -> str:
    """The file's text; reading it gives the same POMDP, bit for bit."""
    if pomdp.initial_observation is not None or pomdp.horizon is not None:
        raise MulvError(
            "Cassandra's format has no horizon and nothing to see before the first action; write "
            "dataclasses.replace(pomdp, horizon=None, initial_observation=None)"
        )
    return "\n".join([*_lines(pomdp), ""])


def _lines(pomdp: POMDP) -> Iterator[str]:
    yield f"discount: {float(pomdp.discount)!r}"
    yield "values: reward"
    names = {
        "states": pomdp.state_names,
        "actions": pomdp.action_names,
        "observations": pomdp.observation_names,
    }
    for what, given in names.items():
        yield f"{what}: {_names(what, given)}"
    yield f"start: {' '.join(map(repr, pomdp.start.tolist()))}"
    columns = {"T": pomdp.state_names, "O": pomdp.observation_names}
    for letter, matrices in (("T", pomdp.transition), ("O", pomdp.observation)):
        for a, matrix in zip(pomdp.action_names, matrices, strict=True):
            for row, column, p in _entries(matrix):
                yield f"{letter}: {a} : {pomdp.state_names[row]} : {columns[letter][column]} {p!r}"
    for a, rewards in zip(pomdp.action_names, pomdp.reward.tolist(), strict=True):
        for s, reward in zip(pomdp.state_names, rewards, strict=True):
            if reward:
                yield f"R: {a} : {s} : * : * {reward!r}"


def _entries(matrix: csr_array) -> Iterator[tuple[int, int, float]]:
    entries = matrix.tocoo()
    return zip(entries.row.tolist(), entries.col.tolist(), entries.data.tolist(), strict=True)


def _names(what: str, names: tuple[str, ...]) -> str:
    """A list, or a count where they are numbers anyway."""
    if names == tuple(map(str, range(len(names)))):
        return str(len(names))
    for name in names:
        if not NAME.fullmatch(name) or name in KEYWORDS:
            raise MulvError(f"{name!r} cannot be one of the {what} in Cassandra's format")
    return " ".join(names)
