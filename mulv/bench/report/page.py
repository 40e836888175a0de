"""The page: one section per suite, the paper's table, speed, and the provenance of all numbers."""

from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import NamedTuple

import numpy as np

from mulv.bench.published import random_return
from mulv.bench.report import numbers
from mulv.bench.report.aggregates import aggregates
from mulv.bench.report.figures import Colours, learning_curves
from mulv.bench.report.html import Html, element, join
from mulv.bench.report.paper import paper_section
from mulv.bench.report.tables import final_returns, provenance, speed
from mulv.bench.runs import Run, by_label, by_suite, method_order, to_runs
from mulv.bench.scores import Scale, Table, comparable, scales
from mulv.bench.store import find_runs
from mulv.core.errors import MulvError
from mulv.data.files import written_aside

COLOURS = 8  # in style.css; further methods repeat them with dashed lines
ENDINGS = (".html", ".htm")
SEED = 0  # of the bootstrap, so that equal results give an equal page

HEAD = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>mulv report</title>
<style>
{style}</style>
</head>
"""


class Section(NamedTuple):
    """A section of the page; two small ones share a row."""

    anchor: str
    title: str
    content: Html
    small: bool = False

    def html(self) -> Html:
        css = "small" if self.small else None
        return element("section", element("h2", self.title), self.content, id=self.anchor, class_=css)


def write_report(directory: Path, out: Path) -> int:
    """Write the page of all results under a directory, atomically; returns the number of runs."""
    if out.suffix not in ENDINGS:
        raise MulvError(f"{out} is not named as a page is; let it end in {' or '.join(ENDINGS)}")
    if out.is_dir() or not out.absolute().parent.is_dir():
        raise MulvError(f"{out} cannot be written: it is a directory, or its own does not exist")
    runs = to_runs(find_runs(directory))
    page = render(runs, speed(directory))
    with written_aside(out) as aside:
        aside.write_bytes(page.encode("utf-8", errors="replace"))  # JSON may hold unpaired surrogates
    return len(runs)


def render(runs: Sequence[Run], speed_tables: Sequence[Html] = ()) -> Html:
    """The page as HTML."""
    if not any(run.returns.size for run in runs):
        raise MulvError("none of these runs was ever evaluated; there is nothing to report")
    labels = sorted({run.label for run in runs}, key=method_order)
    colours = {label: f"c{i % COLOURS} d{i // COLOURS % 4}" for i, label in enumerate(labels)}
    rng = np.random.default_rng(SEED)
    sections = [
        suite_section(f"suite-{number}", suite, some, colours, rng)
        for number, (suite, some) in enumerate(by_suite(runs).items())
    ]
    sections.sort(key=lambda section: section.small)
    sections.append(Section("paper", "The paper's table, with ours beside it", paper_section(runs)))
    if speed_tables:
        sections.append(Section("speed", "Speed", element("div", *speed_tables, class_="grid tables")))
    sections.append(Section("provenance", "What made these numbers", provenance(runs)))
    links = [element("a", section.title, href=f"#{section.anchor}") for section in sections]
    body = element(
        "body",
        element("header", element("h1", "mulv report"), element("p", summary(runs)), element("nav", *links)),
        element("main", *[section.html() for section in sections]),
    )
    style = (resources.files("mulv.bench.report") / "style.css").read_text()
    return Html(HEAD.format(style=style) + body + "\n</html>\n")


def summary(runs: Sequence[Run]) -> str:
    """The numbers of runs, methods and tasks, and the hours of training, in one line."""
    counted = [
        numbers.count(len(runs), "run"),
        numbers.count(len({run.method for run in runs}), "method"),
        numbers.count(len({run.task for run in runs}), "task"),
    ]
    return f"{', '.join(counted)}; {sum(run.minutes for run in runs) / 60:.1f} hours of training"


def suite_section(
    anchor: str, suite: str, runs: Sequence[Run], colours: Colours, rng: np.random.Generator
) -> Section:
    """The section of a suite: final returns, aggregates over its problems, a learning curve of each."""
    table = by_label(runs)
    if not table:
        return Section(anchor, suite, element("p", "None of these runs was evaluated."), small=True)
    titles = {
        problem: ", ".join(sorted({run.task for run in runs if run.problem == problem}, reverse=True))
        for problem in sorted({run.problem for run in runs if run.returns.size}, key=str.lower)
    }
    curves = [
        learning_curves(
            title,
            {label: rows[problem] for label, rows in table.items() if problem in rows},
            colours,
            random_return(next(run.task for run in runs if run.problem == problem)),
        )
        for problem, title in titles.items()
    ]
    aggregated = _aggregated(table, titles, colours, rng)
    content = join(
        element("p", summary(runs), class_="summary"),
        final_returns(table, titles),
        element("h3", "Learning curves"),
        element(
            "p",
            "A thin line is a seed, the thick one their mean, the band its 95 % t-interval.",
            class_="fine",
        ),
        element("div", *curves, class_="grid"),
        *aggregated,
    )
    return Section(anchor, suite, content, small=len(titles) == 1 and not aggregated)


def _aggregated(
    table: Table, titles: Mapping[str, str], colours: Colours, rng: np.random.Generator
) -> list[Html]:
    """The aggregate figures, with a text on how scores are normalised and what is left out."""
    known = scales(table)
    labels, problems = comparable(table, known)
    runs = {problem: [run for label in labels for run in table[label][problem]] for problem in problems}
    seeds = max((len(table[label][problem]) for label in labels for problem in problems), default=0)
    if seeds < 2 and (len(labels) < 2 or len(problems) < 2):
        return []  # so few runs that the table suffices
    chosen = {label: table[label] for label in labels}
    said = [f"Over {', '.join(problems)}. " + _scale_words(known, problems)]
    if uneven := [problem for problem in problems if len({run.steps[-1] for run in runs[problem]}) > 1]:
        said.append(f"Runs differ in length, and each counts at its own end: {', '.join(uneven)}.")
    if missing := [title for problem, title in titles.items() if problem not in known]:
        said.append(f"Left out, for want of a scale: {', '.join(missing)}.")
    if fewer := [title for problem, title in titles.items() if problem in known and problem not in problems]:
        said.append(f"Left out, because not every method here ran them: {', '.join(fewer)}.")
    if absent := [label for label in table if label not in labels]:
        said.append(f"Left out, because they share too few tasks with the others: {', '.join(absent)}.")
    return [
        element("h3", "Over tasks and seeds"),
        *[element("p", words, class_="fine") for words in said],
        aggregates(chosen, problems, known, colours, rng),
    ]


ONE = {
    "ceiling": "the best published return with the full state after 200K steps",
    "paper": "what the paper's LV-Rep reached with full observations",
    "best here": "the mean of the best method here",
}


def _scale_words(known: Mapping[str, Scale], problems: Sequence[str]) -> str:
    """A sentence on how returns were normalised to scores."""
    sources: dict[str, list[str]] = {}
    for problem in problems:
        sources.setdefault(known[problem].source, []).append(problem)
    success = sources.pop("success", [])
    if not sources:
        return "A score is the rate of success."
    usual, *others = sorted(sources, key=lambda source: -len(sources[source]))
    words = f"A score of 0 is the return of uniform random actions, 1 is {ONE[usual]}"
    words += "".join(f"; of {', '.join(sources[source])}, {ONE[source]}" for source in others)
    return words + (f"; of {', '.join(success)}, a score is the rate of success" if success else "") + "."
