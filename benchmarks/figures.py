"""The pictures in docs/images, from results/; that of the report needs chromium."""

import shutil
import subprocess
import tempfile
from pathlib import Path

from PIL import Image
from summary import lines

from mulv.bench.curves import compare, compare_on_tasks
from mulv.bench.regret import figure
from mulv.bench.report import write_report

ROOT = Path(__file__).parents[1]
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking")


def picture_of_report(path: Path) -> Path:
    """The top of the page that `mulv report results` writes, as a browser shows it."""
    with tempfile.TemporaryDirectory() as folder:
        page, profile = Path(folder) / "report.html", Path(folder) / "profile"
        write_report(ROOT / "results", page)
        shot = ("--hide-scrollbars", "--window-size=1280,1440", f"--screenshot={path}", page.as_uri())
        subprocess.run(
            ["chromium", *FLAGS, f"--user-data-dir={profile}", *shot], check=True, capture_output=True
        )
    with Image.open(path) as picture:
        picture.convert("RGB").quantize(128).save(path, optimize=True)  # a third of the bytes
    return path


def main() -> None:
    images = ROOT / "docs" / "images"
    images.mkdir(parents=True, exist_ok=True)
    title = "Pendulum-P: its speed is hidden, a window of four observations shows it"
    print(compare(lines("pendulum-memory"), title, images / "pendulum-memory.png"))
    print(compare(lines("first-steps"), "HalfCheetah-P from positions alone", images / "first-steps.png"))
    compared = [
        line for line in lines("positions-30k") if line["method"] in ("mulv", "sac", "sac/gamma-0.99")
    ]
    print(compare_on_tasks(compared, "Positions alone: µLV-Rep and SAC-MLP", images / "positions.png"))
    swing = [line for line in lines("exploration") if line["task"] == "pendulum-swingup-P"]
    print(compare(swing, "pendulum-swingup-P: pays while the pole stands", images / "swing-up.png"))
    masked = lines("masked-control-early")
    for variant in ("fourier",):
        renamed = lines(f"masked-control-{variant}")
        masked += [{**line, "method": f"{line['method']}/{variant}"} for line in renamed]
    title = "Positions alone, 200K steps, the first defaults"
    print(compare_on_tasks(masked, title, images / "masked-control.png"))
    full = [line for line in lines("calibrate-100k") if line["method"].endswith("/full")]
    title = "The full state: µLV-Rep, SAC-MLP, and what is published (dashed)"
    print(compare_on_tasks(full, title, images / "calibration.png", published=True))
    names = {
        "mulv/0.995": "mulv",
        "mulv/levels-ends-window": "mulv/gamma-0.99",
        "mulv/rewards-apart": "mulv/before",
    }
    recent = [
        {**line, "method": names[line["method"]]}
        for line in lines("model-100k") + lines("rewards-100k")
        if line["method"] in names and line["task"] in ("Hopper-P", "HalfCheetah-P")
    ]
    title = "Positions alone: the default, with 0.99, and before; published with the full state (dashed)"
    print(compare_on_tasks(recent, title, images / "positions-100k.png", published=True))
    lock = [line for line in lines("exploration") if line["task"] == "Lock-10-10"]
    print(compare(lock, "A lock of 10 decisions among 10 actions", images / "lock.png"))
    print(figure(ROOT / "results" / "theory", images / "theory-regret.png"))
    if shutil.which("chromium"):
        print(picture_of_report(images / "report.png"))


if __name__ == "__main__":
    main()
