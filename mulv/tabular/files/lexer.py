"""The words of Cassandra's `.pomdp` files, each with its line."""

import math
import re
from collections.abc import Iterator
from typing import NamedTuple

from mulv.core.errors import MulvError

PREAMBLE = ("discount", "values", "states", "actions", "observations")
KEYWORDS = {
    *PREAMBLE,
    "reward",
    "cost",
    "start",
    "include",
    "exclude",
    "T",
    "O",
    "R",
    "uniform",
    "identity",
    "reset",
}
NAME = re.compile(r"[A-Za-z][A-Za-z0-9_\-]*")
_WORD = re.compile(
    r"(?P<skip>[ \t\r\n\f\v]+|\#[^\n]*)|(?P<mark>[:*])"
    r"|(?P<number>[+-]?(?:[0-9]++(?:\.[0-9]*+)?|\.[0-9]++)(?:[eE][+-]?[0-9]++)?)(?![A-Za-z0-9_.])"
    rf"|(?P<name>{NAME.pattern})"
)
_INDEX = re.compile(r"[0-9]{1,9}")


class FileError(MulvError):
    """What is wrong in a file, and in which line."""


class Word(NamedTuple):
    """One word; `kind` is "number", "name", the keyword or mark itself, or "end"."""

    kind: str
    text: str
    line: int

    def __str__(self) -> str:
        return "the end of the file" if self.kind == "end" else repr(self.text[:40])


def words(text: str, source: str) -> Iterator[Word]:
    """The words of a file and an "end"; comments and white space separate them."""
    line, position = 1, 0
    while position < len(text):
        match = _WORD.match(text, position)
        if match is None:
            odd = re.match(r"\S{1,20}", text[position:])
            raise FileError(f"{source}:{line}: {(odd.group() if odd else text[position])!r} is not a word")
        found = match.group()
        if match.lastgroup != "skip":
            itself = match.lastgroup == "mark" or found in KEYWORDS
            yield Word(found if itself else str(match.lastgroup), found, line)
        line += found.count("\n")
        position = match.end()
    yield Word("end", "", line)


class Reader:
    """Words one after the other, with one to look ahead; errors name the file and the line."""

    def __init__(self, text: str, source: str):
        self._words, self.source = words(text, source), source
        self.next = next(self._words)
        self.line = 1  # of the word last taken

    def error(self, message: str, line: int | None = None) -> FileError:
        return FileError(f"{self.source}:{line or self.line}: {message}")

    def take(self) -> Word:
        """The next word."""
        word, self.line = self.next, self.next.line
        if word.kind != "end":
            self.next = next(self._words)
        return word

    def maybe(self, kind: str) -> bool:
        """Take the next word if it is of that kind."""
        if self.next.kind != kind:
            return False
        self.take()
        return True

    def expect(self, kind: str, what: str) -> Word:
        word = self.take()
        if word.kind != kind:
            raise self.error(f"expected {what}, found {word}")
        return word

    def number(self, what: str) -> float:
        value = float(self.expect("number", what).text)
        if not math.isfinite(value):
            raise self.error(f"{what} is too large to be a number")
        return value

    def numbers(self, count: int, what: str) -> list[float]:
        """Exactly `count` numbers."""
        values: list[float] = []
        while self.next.kind == "number" and len(values) < count:
            values.append(self.number(what))
        if len(values) < count:
            self.take()
            raise self.error(f"{what} needs {count} numbers, found {len(values)}")
        return values


def as_index(text: str) -> int | None:
    """The whole number that a word is; None if it is none, or has more digits than anything here."""
    return int(text) if _INDEX.fullmatch(text) else None
