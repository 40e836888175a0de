"""The tables of a POMDPX file, one a variable or reward."""

import math
from collections.abc import Sequence
from typing import NamedTuple
from xml.etree.ElementTree import Element

import numpy as np

from mulv.tabular.files.tables import ROUNDED
from mulv.tabular.files.xml import Document
from mulv.tabular.pomdp import TOLERANCE

LARGEST = 20_000_000  # numbers in a table


class Variable(NamedTuple):
    """A variable of the network; its values by name."""

    name: str
    values: tuple[str, ...]


class Factor(NamedTuple):
    """A table over variables: probabilities of the last given the others, or a reward of all."""

    variables: tuple[Variable, ...]
    table: np.ndarray

    def over(self, axes: list[Variable]) -> np.ndarray:
        """The table with an axis for each of `axes`, of length one where it does not depend on it."""
        order = sorted(range(len(self.variables)), key=lambda i: axes.index(self.variables[i]))
        mine = {self.variables[i] for i in order}
        shape = [len(axis.values) if axis in mine else 1 for axis in axes]
        return self.table.transpose(order).reshape(shape)


def shape_of(variables: Sequence[Variable]) -> tuple[int, ...]:
    """How many values each has."""
    return tuple(len(v.values) for v in variables)


class FactorReader:
    """Reads tables over the variables of a document."""

    def __init__(self, document: Document, known: dict[str, Variable]):
        self.document, self.known = document, known

    def read(self, element: Element, allowed: list[Variable], *, reward: bool = False) -> Factor:
        """One table: <Var>, its <Parent>s, and <Entry>s of which later ones override earlier ones."""
        document = self.document
        names = document.words(document.child(element, "Parent"))
        names = [] if names == ["null"] else names
        names += [] if reward else document.words(document.child(element, "Var"))
        for name in names:
            if self.known.get(name) not in allowed:
                raise document.error(element, f"{name} is not a variable that this table may depend on")
        if not names or len(set(names)) < len(names):
            raise document.error(element, "a table needs variables, each once")
        variables = tuple(self.known[name] for name in names)
        if math.prod(shape_of(variables)) > LARGEST:
            raise document.error(element, f"this table exceeds {LARGEST} numbers")
        parameter = document.child(element, "Parameter")
        if parameter.get("type", "TBL").strip() != "TBL":
            raise document.error(parameter, f"only tables are read, not type {parameter.get('type')!r}")
        table = np.zeros(shape_of(variables))
        for entry in parameter.findall("Entry"):
            self._enter(table, variables, entry, "ValueTable" if reward else "ProbTable")
        return Factor(variables, table if reward else self._stochastic(table, element))

    def _enter(self, table: np.ndarray, variables: tuple[Variable, ...], entry: Element, tag: str) -> None:
        """Fill in an entry: a value stands for itself, `-` for each in turn, `*` for all alike."""
        document = self.document
        instance = document.words(document.child(entry, "Instance"))
        if len(instance) != len(variables):
            raise document.error(entry, f"the instance needs {len(variables)} words, found {len(instance)}")
        index: list[int | slice] = []
        shape: list[int] = []  # of the region that this sets, `*` counting as one
        for word, variable in zip(instance, variables, strict=True):
            if word in ("-", "*"):
                index.append(slice(None))
                shape.append(len(variable.values) if word == "-" else 1)
            elif word in variable.values:
                index.append(variable.values.index(word))
            else:
                raise document.error(entry, f"{word!r} is not a value of {variable.name}")
        numbers = document.child(entry, tag)
        words = document.words(numbers)
        turns = [n for n, word in zip(shape_of(variables), instance, strict=True) if word == "-"]
        if words == ["uniform"] and tag == "ProbTable" and instance[-1] == "-":
            values = np.full(turns, 1 / turns[-1])
        elif words == ["identity"] and tag == "ProbTable" and len(turns) == 2 and turns[0] == turns[1]:
            values = np.eye(turns[0])
        elif len(words) == math.prod(turns):
            values = np.array([self._as_number(numbers, word) for word in words])
        else:
            raise document.error(numbers, f"<{tag}> needs {math.prod(turns)} numbers, found {len(words)}")
        table[tuple(index)] = values.reshape(shape)

    def _stochastic(self, table: np.ndarray, element: Element) -> np.ndarray:
        """Probabilities of the last variable; rescaled where few digits made them miss one by little."""
        sums = table.sum(axis=-1, keepdims=True)
        if np.any(table < 0) or np.any(np.abs(sums - 1) > ROUNDED):
            wrong = sums[np.abs(sums - 1) > ROUNDED]
            what = f"sum to {wrong[0]:.10g}, not to one" if len(wrong) else "are negative"
            raise self.document.error(element, f"probabilities here {what}")
        return np.where(np.abs(sums - 1) > TOLERANCE, table / sums, table)

    def number(self, element: Element) -> float:
        words = self.document.words(element)
        if len(words) != 1:
            raise self.document.error(element, f"<{element.tag}> needs one number")
        return self._as_number(element, words[0])

    def _as_number(self, element: Element, word: str) -> float:
        try:
            value = float(word)
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            raise self.document.error(element, f"{word[:40]!r} is not a number")
        return value
