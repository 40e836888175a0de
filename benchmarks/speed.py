"""Speed: SAC-MLP beside other libraries (peers.py), and what µLV-Rep's updates cost, on vectors (updates.py)
and on frames (pixels.py).

    python benchmarks/speed.py            all
    python benchmarks/speed.py mulv       one of them

Writes results/speed/<name>.json each and prints all figures as one JSON object, its last line. The comparison
with other libraries needs the extra mulv[peers] (`make bench-speed` installs it).
"""

import argparse
import json
import sys
from importlib.util import find_spec

import peers
import pixels
import updates
from keeping import keep

NAMES = ("sac", "mulv", "pixels")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar=f"{{{','.join(NAMES)}}}", help="default: all")
    parser.add_argument("--turns", type=int, default=5, help="times each thing is measured")
    parser.add_argument("--steps", type=int, default=2000, help="environment steps timed in a turn of SAC")
    options = parser.parse_args()
    names = options.names or NAMES
    if unknown := {*names} - {*NAMES}:
        parser.error(f"nothing is called {unknown.pop()!r}; there are: {' '.join(NAMES)}")
    missing = [name for name in ("sbx", "stable_baselines3") if find_spec(name) is None]
    if "sac" in names and missing:
        sys.exit(f"{missing[0]} is missing: the comparison needs the extra mulv[peers] (make bench-speed)")
    measured = {
        "sac": lambda: peers.measure(options.turns, options.steps),
        "mulv": lambda: updates.measure(options.turns),
        "pixels": lambda: pixels.measure(options.turns),
    }
    shown = {}
    for name in names:
        shown |= keep(name, measured[name]())
    print(json.dumps(shown))


if __name__ == "__main__":
    main()
