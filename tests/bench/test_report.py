"""The page says what the results say, escapes what they hold, and is written whole or not at all."""

import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest

from mulv import cli
from mulv.bench.published import paper_table
from mulv.bench.report import numbers, render, write_report
from mulv.bench.report.paper import ours
from mulv.bench.runs import to_runs
from mulv.core.errors import MulvError
from tests.bench.support import result, write_store

HOSTILE = "</title></style><script>alert(1)</script><img src=x onerror=alert(2)>\"'&\ud800"
VOID = {"meta"}


class Balanced(HTMLParser):
    """Counts elements and fails where one is not closed."""

    def __init__(self):
        super().__init__()
        self.open, self.seen, self.text = [], [], []

    def handle_starttag(self, tag, attributes):
        self.seen.append((tag, dict(attributes)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def parsed(page):
    parser = Balanced()
    parser.feed(page)
    parser.close()
    assert not parser.open
    return parser


def page_of(*results):
    return render(to_runs(results))


def seeds(method, task="HalfCheetah-P", number=3, final=100.0, **fields):
    return [result(method, task, seed, final=final + 10 * seed, **fields) for seed in range(number)]


def words(page):
    return " ".join("".join(parsed(page).text).split())


def cell(page, row, column):
    """The text of a cell of the paper's table."""
    section = page[page.index('id="paper"') :]
    head = [re.sub("<[^>]*>", "", th) for th in re.findall(r"<th scope=\"col\">(.*?)</th>", section)]
    for found in re.findall(r"<tr><th scope=\"row\">(.*?)</tr>", section):
        cells = found.split("<td>")
        if cells[0].startswith(row):
            return re.sub("<[^>]*>", " ", cells[head.index(column)])
    raise AssertionError(row)


def test_two_methods_have_every_figure():
    page = page_of(*seeds("mulv"), *seeds("sac", final=50.0))
    titles = re.findall("<figcaption>(.*?)</figcaption>", page)
    assert titles == [
        "HalfCheetah-P",
        "Interquartile mean",
        "Median",
        "Mean",
        "Optimality gap",
        "Performance profile",
        "Probability of improvement",
        "Sample efficiency",
    ]
    assert page.count("<svg") == len(titles)
    assert "mulv &gt; sac: 1.00 [1.00, 1.00]" in page


def test_the_page_is_well_formed_and_asks_for_nothing():
    page = page_of(*seeds("mulv"), *seeds("sac"))
    tags = parsed(page).seen
    assert not {tag for tag, _ in tags} & {"script", "link", "img", "iframe", "object", "base", "form"}
    for _, attributes in tags:
        assert not any(name.startswith("on") or name == "src" for name in attributes)
        assert attributes.get("href", "#").startswith("#")
    assert not re.search(r"url\(|@import|https?://", page)
    assert "default-src 'none'" in page


def test_whatever_results_hold_is_text(tmp_path):
    """In every field that reaches the page."""
    fields = {
        "suite": HOSTILE,
        "config_hash": HOSTILE,
        "commit": HOSTILE,
        "versions": {HOSTILE: HOSTILE},
        "config": {"seed": 0},
    }
    lines = [result(m + HOSTILE, f"{HOSTILE}-P", s, **fields) for m in ("mulv", "sac") for s in range(3)]
    (tmp_path / "speed").mkdir()
    (tmp_path / "speed" / "x.json").write_text(json.dumps({HOSTILE: HOSTILE, "commit": HOSTILE}))
    (tmp_path / "trial").mkdir()
    (tmp_path / "trial" / "any.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    out = tmp_path / "page.html"
    write_report(tmp_path, out)
    page = out.read_text()
    assert not {tag for tag, _ in parsed(page).seen} & {"script", "img"}
    assert page.count("</style>") == page.count("</title>") - page.count("<title>") + 1 == 1
    assert page.count("&lt;script&gt;") > 10


def test_a_single_seed_is_said_to_be_one_and_has_no_band():
    page = page_of(result("mulv"))
    assert "Fewer than 3 seeds, so no band: mulv has 1 seed." in words(page)
    assert 'class="band' not in page
    assert "Interquartile mean" not in page
    assert 'class="band' in page_of(*seeds("mulv"))


def test_two_seeds_have_intervals_with_a_warning_and_one_has_none():
    page = page_of(*seeds("mulv", number=2), *seeds("sac", number=1))
    assert "Fewer than 3 seeds on some task: mulv (2), sac (1)." in words(page)
    panels = page[page.index("Interquartile mean") : page.index("Performance profile")]
    assert panels.count('class="range"') == 4  # one method with an interval, in four panels


def test_the_mean_and_its_interval_are_in_the_table():
    page = words(page_of(*seeds("mulv", number=3, final=1000.0)))
    assert "1,010 ± 25 (3)" in page  # 4.303 · 10 / √3


def test_each_suite_has_a_section_and_small_ones_go_last():
    page = page_of(*seeds("mulv", suite="one"), *seeds("sac", suite="one"), result(suite="two"))
    assert re.findall("<h2>(.*?)</h2>", page)[:2] == ["one", "two"]
    assert '<section id="suite-1" class="small">' in page


def test_the_papers_table_stands_where_ours_is_empty():
    page = page_of(result(task="Swimmer-v5"))
    for base, methods in paper_table().items():
        theirs = cell(page, base, "µLV-Rep").rpartition("–")[0].strip()
        assert theirs == numbers.plus_minus(*methods["mulv"])
        assert cell(page, base, "PSR").split()[-1] == "–"
    assert "10,729" in page


@pytest.mark.parametrize(
    ("finals", "mark"),
    [
        ((9000.0, 9010.0, 9020.0), "▲ +5,414"),
        ((10.0, 20.0, 30.0), "▼ −3,576"),
        ((3500.0, 3600.0, 3700.0), "≈ +3.8"),
    ],
)
def test_a_difference_to_the_paper_is_marked_by_its_interval(finals, mark):
    runs = [result("mulv", "HalfCheetah-P", s, final=f, steps=200_000) for s, f in enumerate(finals)]
    assert mark in cell(page_of(*runs), "HalfCheetah", "µLV-Rep")


def test_one_seed_has_a_difference_without_a_mark():
    text = cell(page_of(result(final=4000.0, steps=200_000)), "HalfCheetah", "µLV-Rep")
    assert "+404 (+11 %)" in text
    assert not re.search("[▲▼≈]", text)


def test_no_difference_is_taken_between_other_rewards_or_other_steps():
    pendulum = cell(page_of(*seeds("mulv", "Pendulum-P", final=-200.0, steps=200_000)), "Pendulum", "µLV-Rep")
    assert "−190" in pendulum
    assert "†" in pendulum
    assert "%" not in pendulum
    short = cell(page_of(*seeds("mulv", steps=30_000)), "HalfCheetah", "µLV-Rep")
    assert "at 30K" in short
    assert "%" not in short


def test_runs_with_the_papers_reward_are_preferred_and_longer_ones_cut():
    lines = [
        result(task="Hopper-P", final=1.0, steps=200_000),
        result(task="Hopper-P-mbbl", final=2.0, steps=200_000, suite="masked-control-mbbl"),
        result("sac", final=400.0, steps=400_000),
        result("mulv/variant", "HalfCheetah-P", final=5.0, steps=200_000),
    ]
    runs = to_runs(lines)
    assert ours(runs, "Hopper", "mulv").task == "Hopper-P-mbbl"
    assert ours(runs, "HalfCheetah", "sac")[1:] == (np.asarray([200.0]), 200_000)
    assert ours(runs, "HalfCheetah", "mulv") is None


@pytest.mark.parametrize("order", [1, -1])
def test_the_tables_own_suite_comes_before_its_variants(order):
    suites = ("masked-control", "masked-control-pink", "positions")[::order]
    finals = {"masked-control": 3.0, "masked-control-pink": 2.0, "positions": 1.0}
    runs = to_runs([result(final=finals[suite], steps=200_000, suite=suite) for suite in suites])
    assert ours(runs, "HalfCheetah", "mulv").returns == [3.0]
    others = [run for run in runs if run.suite != "masked-control"]
    assert ours(others, "HalfCheetah", "mulv").returns == [2.0]


def test_full_observations_are_beside_the_papers_best():
    runs = to_runs(
        [result("lvrep", "HalfCheetah-F", steps=200_000), result("mulv", "HalfCheetah-F", steps=200_000)]
    )
    assert ours(runs, "HalfCheetah", "lvrep").task == "HalfCheetah-F"
    assert ours(runs, "HalfCheetah", "mulv") is None


def test_methods_and_tasks_left_out_of_aggregates_are_named():
    lines = [
        *(line for m in ("mulv", "sac") for t in ("Ant-P", "Hopper-P") for line in seeds(m, t)),
        *seeds("mulv", "Walker-P"),
        *seeds("slac", "Swimmer-v5"),
    ]
    page = words(page_of(*lines))
    assert (
        "Over Ant, Hopper. A score of 0 is the return of uniform random actions, 1 is the best published"
        in page
    )
    assert "for want of a scale: Swimmer-v5." in page
    assert "not every method here ran them: Walker-P." in page
    assert "share too few tasks with the others: slac." in page


def test_one_seed_of_several_tasks_is_aggregated_without_intervals():
    page = page_of(*[result(method, task) for method in ("mulv", "sac") for task in ("Ant-P", "Hopper-P")])
    assert "Interquartile mean" in page
    assert 'class="range"' not in page
    assert 'class="band' not in page


def test_runs_of_different_length_are_said_to_be():
    said = "Runs differ in length, and each counts at its own end: HalfCheetah."
    assert said in words(page_of(*seeds("mulv"), *seeds("sac", steps=2000)))
    assert said not in words(page_of(*seeds("mulv"), *seeds("sac")))


def test_equal_results_give_an_equal_page():
    lines = [*seeds("mulv"), *seeds("sac", final=70.0)]
    assert page_of(*lines) == page_of(*lines)


def test_commits_hashes_versions_and_speed_are_on_the_page(tmp_path):
    write_store(tmp_path, result(commit="c0ffee0123456789-modified", config_hash="feedbeef"))
    (tmp_path / "speed").mkdir()
    (tmp_path / "speed" / "sac.json").write_text(json.dumps({"steps_per_s": {"mulv": [100.0, 300.0, 200.0]}}))
    write_report(tmp_path, tmp_path / "page.html")
    text = words((tmp_path / "page.html").read_text())
    assert "c0ffee0123-modified" in text
    assert "feedbeef" in text
    assert "jax" in text
    assert "steps per s · mulv200 (median of 3)" in text


def test_the_command_writes_the_page_and_says_so(tmp_path, capsys):
    write_store(tmp_path, *seeds("mulv"))
    out = tmp_path / "page.html"
    with pytest.raises(SystemExit) as ended:
        cli.main(["report", str(tmp_path), "--out", str(out)])
    assert ended.value.code == 0
    assert f"page {out}: 3 runs" in capsys.readouterr().out
    assert out.read_text().startswith("<!doctype html>")


@pytest.mark.parametrize("fault", ["empty", "damaged", "speed", "unevaluated", "nowhere to write"])
def test_bad_input_is_one_line_and_leaves_the_old_page(tmp_path, capsys, fault):
    store, out = tmp_path / "store", tmp_path / "page.html"
    store.mkdir()
    out.write_text("old")
    if fault != "empty":
        write_store(store, result() if fault != "unevaluated" else result(eval_env_steps=[], eval_returns=[]))
    if fault == "damaged":
        (store / "trial" / "sac.jsonl").write_text("{\n")
    if fault == "speed":
        (store / "speed").mkdir()
        (store / "speed" / "x.json").write_text("[")
    target = tmp_path / "none" / "page.html" if fault == "nowhere to write" else out
    with pytest.raises(SystemExit) as ended:
        cli.main(["report", str(store), "--out", str(target)])
    error = capsys.readouterr().err
    assert ended.value.code == 1
    assert error.startswith("mulv: error: ")
    assert error.count("\n") == 1
    assert out.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["page.html"]


def test_nothing_evaluated_is_refused():
    with pytest.raises(MulvError, match="was ever evaluated"):
        page_of(result(eval_env_steps=[], eval_returns=[]))
