"""The page in a real browser: headless Chromium (Debian's `chromium`)."""

import html
import re
import shutil
import subprocess
from pathlib import Path

import matplotlib.image
import numpy as np
import pytest

from mulv.bench.report import write_report
from tests.bench.support import result, write_store

CHROMIUM = shutil.which("chromium")
pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason="chromium is not installed: apt-get install chromium"
)

FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--enable-logging=stderr",
]
HOSTILE = "<script>document.title='taken'</script><img src=x onerror=\"document.title='taken'\">"


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Everything a page can have: several suites, many methods, long and hostile names, speed."""
    root = tmp_path_factory.mktemp("report")
    methods = (
        "mulv",
        "sac",
        "dreamer",
        "mulv/an-option-with-a-very-long-name",
        "slac",
        "psr",
        "a",
        "b",
        "c",
        "d",
    )
    lines = [
        result(method, task, seed, final=100.0 * i + seed, steps=200_000, suite="masked-control")
        for i, method in enumerate(methods)
        for task in ("HalfCheetah-P", "Hopper-P", "Pendulum-P")
        for seed in range(3)
    ]
    write_store(root, *lines, result(suite="x" * 80, task=HOSTILE), result("lvrep", "HalfCheetah-F"))
    (root / "speed").mkdir()
    (root / "speed" / "x.json").write_text('{"a_figure_with_a_very_long_name_indeed": 1.5}')
    write_report(root, root / "page.html")
    return root / "page.html"


def chromium(profile: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A browser of its own, with an empty profile."""
    command = [str(CHROMIUM), *FLAGS, f"--user-data-dir={profile}", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=600)


def said(stderr: str) -> list[str]:
    """What the page said on the console, violations of its policy among it."""
    return [line for line in stderr.splitlines() if "CONSOLE" in line]


def test_the_browser_shows_every_figure_and_complains_of_nothing(page, tmp_path):
    done = chromium(tmp_path / "profile", "--dump-dom", page.as_uri())
    assert done.stdout.count("<svg") == page.read_text().count("<svg") > 10
    assert "<title>mulv report</title>" in done.stdout
    assert not re.search("<script|<img", done.stdout)
    assert said(done.stderr) == []


def test_a_page_that_asks_for_the_network_would_be_noticed(page, tmp_path):
    """The policy that the page carries is what the test above relies on."""
    asking = tmp_path / "asking.html"
    asking.write_text(page.read_text().replace("</body>", '<img src="http://127.0.0.1:9/x.png"></body>'))
    done = chromium(tmp_path / "profile", "--dump-dom", asking.as_uri())
    assert any("Content Security Policy" in line for line in said(done.stderr))


@pytest.mark.parametrize("width", [375, 768, 1280])
def test_nothing_is_wider_than_the_screen(page, tmp_path, width):
    """Measured in a frame, because a headless window has a least width of its own."""
    inner = html.escape(page.read_text())
    frame = f'<iframe width="{width}" height="800" style="border:0" srcdoc="{inner}"></iframe>'
    script = """<script>onload = () => {
        const inner = document.querySelector("iframe").contentDocument;
        const boxes = [...inner.querySelectorAll("section, figure, svg, p, h2, .legend, .scroll, nav a")];
        const right = Math.max(...boxes.map(box => box.getBoundingClientRect().right));
        const wide = box => box.scrollWidth > box.clientWidth;
        const scrolled = [...inner.querySelectorAll(".scroll")].filter(wide);
        document.body.dataset.measured =
            [inner.documentElement.scrollWidth, Math.ceil(right), scrolled.length].join(" ");
    }</script>"""
    wrapper = tmp_path / "wrapper.html"
    wrapper.write_text(f"<!doctype html><body>{frame}{script}</body>")
    done = chromium(tmp_path / "profile", "--window-size=1400,900", "--dump-dom", wrapper.as_uri())
    whole, right, scrolled = map(int, re.search(r'data-measured="(\d+) (\d+) (\d+)"', done.stdout).groups())
    assert whole == width
    assert right <= width
    assert scrolled > 0 or width > 400  # wide tables scroll in boxes of their own


def test_light_and_dark_are_what_they_say(page, tmp_path):
    brightness = {}
    for name, number in (("dark", 0), ("light", 1)):
        picture = tmp_path / f"{name}.png"
        scheme = f"--blink-settings=preferredColorScheme={number}"
        chromium(tmp_path / name, scheme, "--window-size=1280,1600", f"--screenshot={picture}", page.as_uri())
        image = matplotlib.image.imread(picture)[..., :3]
        brightness[name] = float(np.median(image))
        assert image.std() > 0.05  # something is drawn
    assert brightness["dark"] < 0.25
    assert brightness["light"] > 0.9
