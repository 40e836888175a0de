"""Tables: final returns of each method, speed, and the provenance of each number."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mulv.bench.report import numbers
from mulv.bench.report.html import Html, element, join, table
from mulv.bench.runs import Run
from mulv.bench.scores import Table
from mulv.bench.statistics import t_half_width
from mulv.core.errors import MulvError


def final_returns(methods: Table, problems: Mapping[str, str]) -> Html:
    """The last evaluation of every method on every problem (key: title); the longer side is vertical."""
    cells: dict[tuple[str, str], str] = {}
    for problem in problems:
        finals = {
            label: np.asarray([run.returns[-1] for run in rows[problem]])
            for label, rows in methods.items()
            if problem in rows
        }
        best = max(finals, key=lambda label: finals[label].mean())
        for label, values in finals.items():
            cells[label, problem] = _mean(values, bold=label == best and len(finals) > 1)
    if len(methods) > len(problems):
        head = ["method", *problems.values()]
        rows = [[label, *[cells.get((label, problem), "–") for problem in problems]] for label in methods]
    else:
        head = ["task", *methods]
        rows = [
            [title, *[cells.get((label, problem), "–") for label in methods]]
            for problem, title in problems.items()
        ]
    words = "Return of the last evaluation: mean over seeds ± half its 95 % t-interval (seeds)."
    return join(table(head, rows), element("p", words, class_="fine"))


def _mean(values: np.ndarray, bold: bool) -> Html:
    mean = float(values.mean())
    text = numbers.plus_minus(mean, float(t_half_width(values))) if values.size > 1 else numbers.short(mean)
    return join(element("strong", text) if bold else text, element("small", f" ({values.size})"))


def speed(directory: Path) -> list[Html]:
    """One table per speed benchmark under a directory."""
    parts = []
    for file in sorted(directory.glob("**/speed/*.json")):
        try:
            figures = json.loads(file.read_text(errors="replace"))
        except (json.JSONDecodeError, RecursionError) as error:
            raise MulvError(f"{file} is damaged ({error})") from error
        if not isinstance(figures, dict):
            raise MulvError(f"{file} is not a benchmark of speed: it is no object")
        commit = str(figures.pop("commit", "unknown"))
        figures.pop("versions", None)
        rows = [[name, value] for name, value in _flat(figures)]
        caption = join(file.stem, element("small", " commit ", element("code", short_commit(commit))))
        parts.append(table(["figure", "value"], rows, caption))
    return parts


def _flat(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Nested numbers as (name, value) pairs; the median of repeated measurements."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _flat(inner, f"{path} · {name}" if path else name)
    elif isinstance(value, list) and value and all(_is_number(item) for item in value):
        yield path.replace("_", " "), f"{numbers.short(float(np.median(value)))} (median of {len(value)})"
    else:
        yield path.replace("_", " "), numbers.short(value) if _is_number(value) else str(value)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def short_commit(commit: str) -> str:
    """The abbreviated hash of a commit, with a mark if files differed from it."""
    head, dash, rest = commit.partition("-")
    return head[:10] + dash + rest


def provenance(runs: Sequence[Run]) -> Html:
    """Code, versions and configurations of all runs: a summary, and a table with every run."""
    packages = sorted({str(name) for run in runs for name in run.versions})
    versions = [
        [name, ", ".join(sorted({str(r.versions[name]) for r in runs if name in r.versions}))]
        for name in packages
    ]
    every = [
        [
            run.suite,
            run.method,
            run.task,
            str(run.seed),
            numbers.steps(run.env_steps),
            numbers.short(run.returns[-1]) if run.returns.size else "not evaluated",
            f"{run.minutes:.0f}",
            element("code", run.config_hash),
            element("code", short_commit(run.commit)),
        ]
        for run in runs
    ]
    head = ["suite", "method", "task", "seed", "steps", "final return", "minutes", "config hash", "commit"]
    listing = element(
        "details",
        element("summary", f"Every run with its configuration's hash and commit ({len(runs)})"),
        table(head, every),
    )
    return join(
        element("p", "Commits: ", *_listed({short_commit(run.commit) for run in runs})),
        element("p", "“-modified” marks runs of a source tree that differed from its commit.", class_="fine"),
        listing,
        element("details", element("summary", "Versions"), table(["package", "version"], versions)),
    )


def _listed(commits: Iterable[str]) -> Iterator[Html]:
    for number, commit in enumerate(sorted(commits)):
        yield join(", " if number else "", element("code", commit))
