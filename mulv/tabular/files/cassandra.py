"""Cassandra's `.pomdp` format, whole: the preamble, the start, and T, O and R in all their forms."""

from collections.abc import Mapping, Sequence

import numpy as np

from mulv.tabular.files.lexer import PREAMBLE, Reader, Word, as_index
from mulv.tabular.files.tables import ENTRIES, Kernel, Rewards, as_distribution
from mulv.tabular.pomdp import POMDP

MOST = 1_000_000  # states, actions or observations
Row = Mapping[int, float]  # of a sparse matrix


def parse_cassandra(text: str, source: str = "text") -> POMDP:
    """The POMDP that a file's text says; what is wrong with it is an error with its line."""
    return _Parser(Reader(text, source)).parse()


class _Parser:
    def __init__(self, reader: Reader):
        self.reader = reader
        self.discount: float | None = None
        self.sign: float | None = None  # −1 where values are costs
        self.names: dict[str, tuple[str, ...]] = {}
        self.index: dict[str, dict[str, int]] = {}
        self.entries = 0

    def parse(self) -> POMDP:
        while self.reader.next.kind in PREAMBLE:
            self.preamble(self.reader.take())
        for what in ("states", "actions", "observations"):
            if what not in self.names:
                raise self.reader.error(
                    f"{what} are not given before {self.reader.next}", self.reader.next.line
                )
        if self.discount is None:
            raise self.reader.error("discount is not given")
        self.start = self.parse_start()
        states, actions = self.names["states"], self.names["actions"]
        self.kernels = {
            "T": Kernel("T", actions, states, len(states)),
            "O": Kernel("O", actions, states, len(self.names["observations"])),
        }
        self.rewards = Rewards.none()
        while not self.reader.maybe("end"):
            self.statement()
        transition, observation = (self.kernels[letter].matrices(self.reader) for letter in "TO")
        return POMDP(
            transition=transition,
            observation=observation,
            reward=self.rewards.expected(transition, observation),
            start=self.start,
            discount=self.discount,
            state_names=states,
            action_names=actions,
            observation_names=self.names["observations"],
        )

    # ------------------------------------------------------------------------------ preamble and start

    def preamble(self, word: Word) -> None:
        given = {"discount": self.discount is not None, "values": self.sign is not None, **self.names}
        if given.get(word.kind):
            raise self.reader.error(f"{word.text} is given twice")
        self.reader.expect(":", f"a colon after {word.text}")
        if word.kind == "discount":
            self.discount = self.reader.number("the discount")
            if not 0 <= self.discount <= 1:
                raise self.reader.error(f"the discount is {self.discount}; it must lie between 0 and 1")
        elif word.kind == "values":
            if self.reader.next.kind not in ("reward", "cost"):
                self.reader.expect("reward", "reward or cost")
            self.sign = -1.0 if self.reader.take().kind == "cost" else 1.0
        else:
            self.names[word.kind] = self.parse_names(word.text)
            self.index[word.kind] = {name: i for i, name in enumerate(self.names[word.kind])}

    def parse_names(self, what: str) -> tuple[str, ...]:
        if self.reader.next.kind == "number":
            count = as_index(self.reader.take().text)
            if not count or count > MOST:
                raise self.reader.error(f"{what} needs a count from 1 to {MOST}, or names")
            return tuple(map(str, range(count)))
        names: dict[str, None] = {}
        while self.reader.next.kind == "name":
            name = self.reader.take().text
            if name in names:
                raise self.reader.error(f"two {what} are called {name!r}")
            names[name] = None
        if not names:
            raise self.reader.error(f"{what} needs a count or names, found {self.reader.take()}")
        return tuple(names)

    def parse_start(self) -> np.ndarray:
        """ρ0; uniform if the file says nothing of it."""
        reader, states = self.reader, len(self.names["states"])
        if not reader.maybe("start"):
            return np.full(states, 1 / states)
        line, mode = reader.line, reader.next.kind
        if mode in ("include", "exclude"):
            reader.take()
            reader.expect(":", f"a colon after start {mode}")
            listed = np.zeros(states, bool)
            while reader.next.kind in ("name", "number", "*"):
                listed[self.places("states")] = True
            inside = listed if mode == "include" else ~listed
            if not inside.any():
                raise reader.error("this leaves no state to start in", line)
            return inside / inside.sum()
        reader.expect(":", "a colon after start")
        if reader.maybe("uniform"):
            return np.full(states, 1 / states)
        if reader.next.kind == "name":
            return np.eye(1, states, self.as_place("states", reader.take()))[0]
        first = reader.expect("number", "a state, uniform, or probabilities")
        if reader.next.kind != "number" and (states > 1 or first.text == "0"):
            return np.eye(1, states, self.as_place("states", first))[0]
        rest = reader.numbers(states - 1, "start")
        return np.array(
            as_distribution(self.probabilities([float(first.text), *rest]), "start", reader, line)
        )

    # ---------------------------------------------------------------------------------------- statements

    def statement(self) -> None:
        word = self.reader.take()
        if word.kind in ("start", *PREAMBLE):
            raise self.reader.error(f"{word.text} must come before T, O and R, and once")
        if word.text not in ("T", "O", "R", "E"):
            raise self.reader.error(f"expected T, O or R, found {word}")
        self.reader.expect(":", f"a colon after {word.text}")
        if word.text == "E":  # zmdp's list of terminal states: that no action leaves them says as much
            self.places("states")
        elif word.kind == "R":
            self.reward()
        else:
            self.probability(self.kernels[word.kind], "states" if word.kind == "T" else "observations")

    def probability(self, kernel: Kernel, columns: str) -> None:
        """T or O of an action, of an action and a state, or of one entry."""
        reader, line = self.reader, self.reader.line
        actions = self.places("actions")
        if not reader.maybe(":"):
            for s, row in enumerate(self.matrix(kernel)):
                self.set_rows(kernel, actions, range(s, s + 1), row, line)
            return
        rows = self.places("states")
        if not reader.maybe(":"):
            self.set_rows(kernel, actions, rows, self.row(kernel), line)
            return
        column = self.place(columns)
        (p,) = self.probabilities([reader.number("a probability")])
        if column is None:
            self.set_rows(kernel, actions, rows, dict.fromkeys(range(kernel.columns), p) if p else {}, line)
            return
        self.spend(len(actions) * len(rows))
        for a in actions:
            for s in rows:
                kernel.set_entry(a, s, column, p, line)

    def set_rows(
        self, kernel: Kernel, actions: Sequence[int], rows: Sequence[int], row: Row, line: int
    ) -> None:
        self.spend(len(actions) * len(rows) * (1 + len(row)))
        for a in actions:
            for s in rows:
                kernel.set_row(a, s, row, line)

    def matrix(self, kernel: Kernel) -> list[Row]:
        """A row a state."""
        reader, states = self.reader, len(kernel.states)
        if reader.next.kind in ("uniform", "reset"):
            return [self.row(kernel)] * states
        if reader.maybe("identity"):
            if states != kernel.columns:
                raise reader.error(f"identity needs as many observations as states, not {kernel.columns}")
            return [{s: 1.0} for s in range(states)]
        values = reader.numbers(states * kernel.columns, f"the matrix of {kernel.letter}")
        return [self.as_row(values[i : i + kernel.columns]) for i in range(0, len(values), kernel.columns)]

    def row(self, kernel: Kernel) -> Row:
        reader = self.reader
        if reader.maybe("uniform"):
            return dict.fromkeys(range(kernel.columns), 1 / kernel.columns)
        if reader.maybe("reset"):
            if kernel.letter != "T":
                raise reader.error("reset is for T: only a state can begin anew")
            return self.as_row(self.start.tolist())
        return self.as_row(reader.numbers(kernel.columns, f"a row of {kernel.letter}"))

    def as_row(self, values: list[float]) -> Row:
        return {column: p for column, p in enumerate(self.probabilities(values)) if p}

    def reward(self) -> None:
        """R of an action and a state, of a next state too, or of one case."""
        reader, sign = self.reader, self.sign or 1.0
        next_states, observations = (len(self.names[what]) for what in ("states", "observations"))
        a = self.place("actions")
        reader.expect(":", "a colon and a state")
        s = self.place("states")
        if not reader.maybe(":"):
            table = reader.numbers(next_states * observations, "the matrix of R")
            value = sign * np.reshape(table, (next_states, observations))
            self.rewards.say(a, s, None, None, value)
            return
        s1 = self.place("states")
        if not reader.maybe(":"):
            value = sign * np.array(reader.numbers(observations, "a row of R"))
            self.rewards.say(a, s, s1, None, value)
            return
        o = self.place("observations")
        self.rewards.say(a, s, s1, o, sign * reader.number("a reward"))

    # -------------------------------------------------------------------------------------- small things

    def place(self, what: str) -> int | None:
        """A name or number as an index, `*` as everything."""
        word = self.reader.take()
        return None if word.kind == "*" else self.as_place(what, word)

    def places(self, what: str) -> Sequence[int]:
        """The same, as all indices that are meant."""
        place = self.place(what)
        return range(len(self.names[what])) if place is None else range(place, place + 1)

    def as_place(self, what: str, word: Word) -> int:
        known = self.index[what]
        if word.kind == "name" and word.text in known:
            return known[word.text]
        index = as_index(word.text) if word.kind == "number" else None
        if index is not None and index < len(known):
            return index
        raise self.reader.error(f"{word} is none of the {len(known)} {what}", word.line)

    def probabilities(self, values: list[float]) -> list[float]:
        for p in values:
            if not 0 <= p <= 1:
                raise self.reader.error(f"{p} is not a probability")
        return values

    def spend(self, entries: int) -> None:
        """Refuse a file that would fill the memory before it does."""
        self.entries += entries
        if self.entries > ENTRIES:
            raise self.reader.error(f"by here more than {ENTRIES} entries are set: too many")
