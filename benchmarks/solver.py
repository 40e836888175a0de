"""How close the solver's bounds come, how soon, and in how much memory.

Each problem is solved in a process of its own, on one core. Prints one JSON object as its last line and
writes it to results/speed/solver.json. A machine that does other things as well slows the wall clock down and
not the process's: `cpu_seconds` is the figure to compare.
"""

import argparse
import json
import multiprocessing
import os
import resource
import time

PROBLEMS = {  # when to stop: a gap, or seconds of the process's own time
    "tiger": (1e-3, 60.0),
    "rocksample-4-4": (1e-3, 60.0),
    "hallway": (1e-3, 10.0),
    "tag": (1e-3, 10.0),
    "rocksample-7-8": (1e-3, 30.0),
}
MARKS = (1, 3, 10)  # after how many seconds of its own time the bounds are noted


def solved(name: str) -> dict[str, object]:
    """Bounds on the way and at the end."""
    from mulv.tabular.solver.search import Search
    from mulv.tabular.zoo import make

    precision, limit = PROBLEMS[name]
    began, cpu = time.perf_counter(), time.process_time()
    pomdp = make(name)
    search = Search(pomdp)
    ready = time.process_time() - cpu
    lower, upper = search.bounds()
    marks, on_the_way = list(MARKS), []
    while upper - lower > precision and (used := time.process_time() - cpu) < limit:
        if marks and used >= marks[0]:
            marks.pop(0)
            on_the_way.append({"cpu_seconds": round(used, 2), "lower": lower, "upper": upper})
        search.trial(precision)
        lower, upper = search.bounds()
    return {
        "states": pomdp.states,
        "frames": len(search.frames.frames),
        "largest_frame": max(len(frame.states) for frame in search.frames.frames),
        "lower": lower,
        "upper": upper,
        "cpu_seconds": round(time.process_time() - cpu, 2),
        "wall_seconds": round(time.perf_counter() - began, 2),
        "cpu_seconds_before_first_trial": round(ready, 2),
        "on_the_way": on_the_way,
        "vectors": sum(vectors.size for vectors in search.lower),
        "beliefs": search.beliefs,
        "peak_memory_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
    }


def main() -> None:
    from keeping import SPEED, keep
    from tqdm import tqdm

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--problems", nargs="+", choices=PROBLEMS, default=list(PROBLEMS))
    names = parser.parse_args().problems
    out = SPEED / "solver.json"
    figures = json.loads(out.read_text()) if out.exists() else {}
    with multiprocessing.get_context("spawn").Pool(1, maxtasksperchild=1) as pool:
        for name in (bar := tqdm(names)):
            bar.set_description(name)
            figures[name] = pool.apply(solved, (name,))
    print(json.dumps(keep("solver", figures)))


if __name__ == "__main__":
    os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"  # for the children: one core
    main()
