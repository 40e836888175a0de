"""POMDPX (the format of APPL), where all is given in tables: factors are multiplied out to one state."""

import itertools
import math
from xml.etree.ElementTree import Element

import numpy as np

from mulv.tabular.files.factors import LARGEST, Factor, FactorReader, Variable, shape_of
from mulv.tabular.files.xml import Document
from mulv.tabular.pomdp import POMDP

MOST = 100_000  # values of a variable
MOST_VARIABLES = 30  # an array has 64 axes at most


def parse_pomdpx(text: str, source: str = "text") -> POMDP:
    """The POMDP that a file's text says. A state variable that is fully observed is part of what is seen."""
    return _Parser(Document(text, source)).parse()


class _Parser:
    def __init__(self, document: Document):
        self.document, self.root = document, document.root

    def parse(self) -> POMDP:
        document, root = self.document, self.root
        if root.tag != "pomdpx":
            raise document.error(root, f"<{root.tag}> is not <pomdpx>")
        self.variables()
        before, after, acts = self.before, self.after, self.acts
        start = self.joint("InitialStateBelief", before, before)
        transition = self.joint("StateTransitionFunction", [*acts, *before, *after], after)
        observation = self.observed()
        groups = (acts, before, [*self.seen, *self.shown])
        A, S, O = (math.prod(shape_of(group)) for group in groups)  # noqa: E741
        actions, states, observations = (
            tuple(map("-".join, itertools.product(*(v.values for v in group)))) for group in groups
        )
        whole = np.broadcast_to(transition, shape_of([*acts, *before, *after]))
        return POMDP(
            transition=tuple(whole.reshape(A, S, S)),
            observation=tuple(observation.reshape(A, S, O)),
            reward=self.reward(transition, observation).reshape(A, S),
            start=np.broadcast_to(start, shape_of(before)).reshape(S),
            discount=self.factors.number(document.child(root, "Discount")),
            state_names=states,
            action_names=actions,
            observation_names=observations,
        )

    # ------------------------------------------------------------------------------------------ variables

    def variables(self) -> None:
        """All variables: `before` and `after` a step, actions, what is seen, and fully observed ones."""
        self.before, self.after = list[Variable](), list[Variable]()
        self.acts, self.seen, self.shown = list[Variable](), list[Variable](), list[Variable]()
        for element in self.document.child(self.root, "Variable"):
            if element.tag == "StateVar":
                values = self.values(element, "s")
                self.before.append(Variable(self.attribute(element, "vnamePrev"), values))
                self.after.append(Variable(self.attribute(element, "vnameCurr"), values))
                if element.get("fullyObs", "false").strip().lower() == "true":
                    self.shown.append(self.after[-1])
            elif element.tag in ("ObsVar", "ActionVar"):
                kind, prefix = (self.seen, "o") if element.tag == "ObsVar" else (self.acts, "a")
                kind.append(Variable(self.attribute(element, "vname"), self.values(element, prefix)))
            elif element.tag != "RewardVar":
                raise self.document.error(element, f"<{element.tag}> is not a kind of variable")
        everything = [*self.before, *self.after, *self.acts, *self.seen]
        known = {v.name: v for v in everything}
        self.factors = FactorReader(self.document, known)
        variable = self.document.child(self.root, "Variable")
        if len(known) < len(everything):
            raise self.document.error(variable, "two variables have one name")
        if len(everything) > MOST_VARIABLES:
            raise self.document.error(variable, f"more than {MOST_VARIABLES} variables are too many")
        if not self.before or not self.acts or not (self.seen or self.shown):
            raise self.document.error(variable, "a state, an action and something to observe are needed")
        if math.prod(shape_of([*self.acts, *self.before, *self.after])) > LARGEST:
            raise self.document.error(variable, f"multiplied out, the table of transitions exceeds {LARGEST}")

    def attribute(self, element: Element, name: str) -> str:
        value = element.get(name, "").strip()
        if not value:
            raise self.document.error(element, f"<{element.tag}> needs the attribute {name}")
        return value

    def values(self, element: Element, prefix: str) -> tuple[str, ...]:
        counts = element.findall("NumValues")
        if counts:
            words = self.document.words(self.document.child(element, "NumValues"))
            if len(words) != 1 or not words[0].isascii() or not words[0].isdigit() or len(words[0]) > 6:
                raise self.document.error(element, "NumValues is not a count")
            count = int(words[0])
            names = tuple(f"{prefix}{i}" for i in range(min(count, MOST + 1)))
        else:
            names = tuple(self.document.words(self.document.child(element, "ValueEnum")))
        if not 1 <= len(names) <= MOST or len(set(names)) < len(names):
            raise self.document.error(element, f"<{element.tag}> needs from 1 to {MOST} different values")
        return names

    # --------------------------------------------------------------------------------------------- tables

    def joint(self, section: str, axes: list[Variable], of: list[Variable]) -> np.ndarray:
        """The product of the tables of a section, one for each of `of`, over `axes`."""
        parent = self.document.child(self.root, section)
        factors = dict[str, Factor]()
        for element in parent.findall("CondProb"):
            factor = self.factors.read(element, axes)
            name = factor.variables[-1].name
            if name in factors or factor.variables[-1] not in of:
                raise self.document.error(element, f"{name} is not one to be given here, or given twice")
            factors[name] = factor
        for variable in of:
            if variable.name not in factors:
                raise self.document.error(parent, f"<{section}> says nothing of {variable.name}")
        if math.prod(shape_of(axes)) > LARGEST:
            raise self.document.error(parent, f"multiplied out, <{section}> exceeds {LARGEST} numbers")
        product = np.ones((1,) * len(axes))
        for factor in factors.values():
            product = product * factor.over(axes)
        return product

    def observed(self) -> np.ndarray:
        """(actions…, states…, observations…): what is seen, and what is shown of the state itself."""
        axes = [*self.acts, *self.after, *self.seen]
        if self.seen:
            table = np.broadcast_to(self.joint("ObsFunction", axes, self.seen), shape_of(axes))
        else:
            table = np.ones(shape_of(axes))
        states = [i for i, v in enumerate(axes) if v in self.shown]
        if math.prod(shape_of([*axes, *self.shown])) > LARGEST:
            raise self.document.error(self.root, f"multiplied out, observations exceed {LARGEST} numbers")
        for i in states:  # a copy of that axis at the end, equal to it for certain
            size = table.shape[i]
            equal = np.eye(size).reshape([size if j == i else 1 for j in range(table.ndim)] + [size])
            table = table[..., None] * equal
        return table

    def reward(self, transition: np.ndarray, observation: np.ndarray) -> np.ndarray:
        """(actions…, states…): expected over what comes next and is seen."""
        acts, before, after, seen = self.acts, self.before, self.after, self.seen
        total = np.zeros(shape_of([*acts, *before]))
        axes = [*acts, *before, *after]
        # The shown copies are no parents of a reward: summed away.
        extra = tuple(range(observation.ndim - len(self.shown), observation.ndim))
        sights = observation.sum(axis=extra) if extra else observation
        for element in self.document.child(self.root, "RewardFunction").findall("Func"):
            factor = self.factors.read(element, [*axes, *seen], reward=True)
            if any(v in seen for v in factor.variables):
                if math.prod(shape_of([*axes, *seen])) > LARGEST:
                    raise self.document.error(
                        element, f"multiplied out, the reward exceeds {LARGEST} numbers"
                    )
                spread = sights.reshape(*shape_of(acts), *(1,) * len(before), *shape_of([*after, *seen]))
                last = tuple(range(len(axes), len(axes) + len(seen)))
                table = np.sum(factor.over([*axes, *seen]) * spread, axis=last)
            else:
                table = factor.over(axes)
            later = tuple(range(len(acts) + len(before), len(axes)))
            with np.errstate(over="ignore", invalid="ignore"):  # an infinite reward is refused by the POMDP
                total = total + np.sum(transition * table, axis=later)
        return total
