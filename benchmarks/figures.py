"""The pictures in docs/images, from results/."""

from pathlib import Path

from summary import lines

from mulv.bench.curves import compare

ROOT = Path(__file__).parents[1]


def main() -> None:
    images = ROOT / "docs" / "images"
    images.mkdir(parents=True, exist_ok=True)
    title = "Pendulum-P: its speed is hidden, a window of four observations shows it"
    print(compare(lines("pendulum-memory"), title, images / "pendulum-memory.png"))
    print(compare(lines("first-steps"), "HalfCheetah-P from positions alone", images / "first-steps.png"))


if __name__ == "__main__":
    main()
