"""The paper's table, with our results beside it."""

from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from mulv.bench.published import (
    PAPER_SEEDS,
    PAPER_STEPS,
    PAPER_TASKS,
    Published,
    ceiling,
    compares_with_paper,
    paper_table,
    split_task,
)
from mulv.bench.report import numbers
from mulv.bench.report.html import Html, element, join, table
from mulv.bench.runs import Run
from mulv.bench.statistics import welch_half_width

NAMES = {
    "mulv": "µLV-Rep",
    "dreamer": "Dreamer-v2",
    "sac": "SAC-MLP",
    "slac": "SLAC",
    "psr": "PSR",
    "lvrep": "Best-FO: LV-Rep, full observation",
}
LONG_ENOUGH = 0.95 * PAPER_STEPS  # an evaluation this late counts as one at the paper's steps


class Ours(NamedTuple):
    """Returns of our runs of one method on one task, within the paper's number of steps."""

    task: str
    returns: np.ndarray  # one per seed
    steps: float

    @property
    def compares(self) -> bool:
        return compares_with_paper(self.task) and self.steps >= LONG_ENOUGH


def ours(runs: Iterable[Run], base: str, method: str) -> Ours | None:
    """Our runs for a cell: preferably with the paper's reward, long enough, and of the table's own suite."""
    groups: dict[tuple[str, str], list[Run]] = defaultdict(list)
    for run in runs:
        name = split_task(run.task)
        seen = "F" if method == "lvrep" else "P"
        fits = name.base == base and name.view == seen and name.variant in ("", "mbbl")
        if fits and run.method == method and run.steps.size and run.steps[0] <= PAPER_STEPS:
            groups[run.suite, run.task].append(run)
    if not groups:
        return None
    found = {key: _within(some) for key, some in groups.items()}
    return found[max(found, key=lambda key: _fitness(key[0], found[key]))]


def _within(runs: list[Run]) -> Ours:
    """Each run's last evaluation within the paper's number of steps."""
    last = [int(np.searchsorted(run.steps, PAPER_STEPS, side="right")) - 1 for run in runs]
    returns = np.asarray([run.returns[i] for run, i in zip(runs, last, strict=True)])
    steps = min(float(run.steps[i]) for run, i in zip(runs, last, strict=True))
    return Ours(runs[0].task, returns, steps)


def _fitness(suite: str, found: Ours) -> tuple[bool, bool, bool, bool, float, int]:
    reached = found.steps >= LONG_ENOUGH
    own, kin = suite == "masked-control", suite.startswith("masked-control")
    return found.compares, reached, own, kin, found.steps, found.returns.size


def paper_section(runs: Iterable[Run]) -> Html:
    """The section with the paper's whole table, also if there are no runs of ours."""
    runs = list(runs)
    rows = []
    for named, base in PAPER_TASKS.items():
        published = paper_table()[base]
        cells = [_cell(published[method], ours(runs, base, method)) for method in NAMES]
        known = ceiling(base)
        full = [numbers.short(known.best), numbers.short(known.sac)] if known else ["", ""]
        title = join(base, element("small", f"“{named}”")) if named != base else base
        rows.append([title, *cells, *full])
    head = ["task", *NAMES.values(), "best published, full state", "SAC, full state"]
    notes = [
        f"Each cell: the paper's mean ± standard deviation over {PAPER_SEEDS} seeds after "
        f"{numbers.steps(PAPER_STEPS)} steps of the masked task; below it ours (seeds in brackets) and the "
        "difference to the paper. ▲ and ▼ mark a difference whose 95 % Welch interval excludes zero, ≈ one "
        "whose interval does not; a single seed is not marked.",
        "† Another reward: the paper's Humanoid, Walker, Ant, Hopper and Pendulum follow an older "
        "benchmark's (Pendulum there pays for hanging still: its returns are positive, Gymnasium's are "
        "negative). No difference is taken; it is for runs of the -mbbl tasks, which have those rewards.",
        "The two columns on the right are returns with the full state under Gymnasium's and dm_control's own "
        "rewards after 200K steps. dm_control has no “Hopper-run”; hopper-hop stands for it.",
    ]
    return join(table(head, rows), *[element("p", words, class_="fine") for words in notes])


def _cell(published: Published, found: Ours | None) -> Html:
    theirs = element("span", numbers.plus_minus(*published), class_="theirs")
    if found is None:
        return join(theirs, element("span", "–", class_="ours none"))
    seeds = found.returns.size
    mean = float(found.returns.mean())
    value = numbers.plus_minus(mean, found.returns.std(ddof=1)) if seeds > 1 else numbers.short(mean)
    value += f" ({seeds})"
    if found.steps < LONG_ENOUGH:
        value += f" at {numbers.steps(found.steps)}"
    if not compares_with_paper(found.task):
        value += " †"
    css = "ours" if found.compares else "ours other"
    return join(theirs, element("span", value, class_=css), *_difference(published, found))


def _difference(published: Published, found: Ours) -> list[Html]:
    """The difference and its mark, if the comparison is fair."""
    if not found.compares:
        return []
    seeds, difference = found.returns.size, float(found.returns.mean() - published.mean)
    share = f" ({round(100 * difference / published.mean):+d} %)".replace("-", numbers.MINUS)
    if seeds < 2:
        return [element("span", numbers.signed(difference) + share, class_="difference unsure")]
    half = welch_half_width((published.std, PAPER_SEEDS), (float(found.returns.std(ddof=1)), seeds))
    mark, css = (
        ("≈", "even") if abs(difference) <= half else ("▲", "better") if difference > 0 else ("▼", "worse")
    )
    return [element("span", f"{mark} {numbers.signed(difference)}{share}", class_=f"difference {css}")]
