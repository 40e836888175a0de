"""Pictures show what they are given."""

from pathlib import Path

import matplotlib.image
import numpy as np

from mulv.bench.curves import compare, compare_on_tasks, learning_curve


def result(method: str, seed: int, slope: float) -> dict[str, object]:
    steps = list(range(100, 600, 100))
    returns = [[slope * s + e for e in range(3)] for s in steps]
    return {
        "task": "T",
        "method": method,
        "seed": seed,
        "env_steps": 500,
        "eval_env_steps": steps,
        "eval_returns": returns,
        "final_mean": float(np.mean(returns[-1])),
    }


def inked(path: Path, colour: tuple[float, float, float]) -> int:
    """Pixels of about a colour."""
    image = matplotlib.image.imread(path)[..., :3]
    return int((np.abs(image - np.asarray(colour)).max(axis=-1) < 0.1).sum())


BLUE, ORANGE = (0.122, 0.467, 0.706), (1.0, 0.498, 0.055)  # the first two colours of the cycle


def test_a_run_is_drawn_in_one_colour(tmp_path: Path) -> None:
    path = learning_curve(result("sac", 0, 1.0), tmp_path / "one.png")
    assert inked(path, BLUE) > 500
    assert inked(path, ORANGE) == 0


def test_methods_are_drawn_in_colours_of_their_own(tmp_path: Path) -> None:
    runs = [result(m, s, k) for m, k in (("a", 1.0), ("b", -1.0)) for s in (0, 1)]
    path = compare(runs, "both", tmp_path / "both.png")
    assert min(inked(path, BLUE), inked(path, ORANGE)) > 500


def test_a_method_has_one_colour_on_all_tasks(tmp_path: Path) -> None:
    """The left task has both methods, the right one the second alone."""
    runs = [result("a", 0, 1.0), result("b", 0, -1.0), {**result("b", 0, -1.0), "task": "U"}]
    path = compare_on_tasks(runs, "both", tmp_path / "tasks.png")
    image = matplotlib.image.imread(path)
    right = tmp_path / "right.png"
    matplotlib.image.imsave(right, image[:, image.shape[1] // 2 :])
    assert min(inked(path, BLUE), inked(path, ORANGE)) > 100
    assert inked(right, ORANGE) > 100
    assert inked(right, BLUE) == 0


def test_published_curves_are_drawn_where_there_are_any(tmp_path: Path) -> None:
    """HalfCheetah has published points far above these runs, so its axis reaches them; T has none."""
    cheetah = [{**result("a", 0, 1.0), "task": "HalfCheetah-F"}]
    plain, published = (
        compare_on_tasks(cheetah, "full", tmp_path / f"{p}.png", published=p) for p in (False, True)
    )
    assert inked(published, BLUE) < inked(plain, BLUE)  # squeezed into a corner
    unknown = [
        compare_on_tasks([result("a", 0, 1.0)], "T", tmp_path / f"T{p}.png", published=p).read_bytes()
        for p in (False, True)
    ]
    assert unknown[0] == unknown[1]
