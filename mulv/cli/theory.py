"""`mulv theory check`, `mulv theory solve` and `mulv theory regret`: their options and output."""

import dataclasses
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import tyro

from mulv.core.errors import MulvError
from mulv.core.names import lookup
from mulv.run.runtime import use_compilation_cache
from mulv.tabular.check import check
from mulv.tabular.files import write_alpha
from mulv.tabular.named import find_pomdp
from mulv.tabular.solver import Solution, solve
from mulv.tabular.solver.progress import Progress

USAGE = """\
usage: mulv theory COMMAND FILE-or-NAME [OPTIONS]

commands:
  check   whether the theory applies to a POMDP, and whether its claims hold there
  solve   bounds of the optimal value, and alpha vectors of a plan that has the lower one
  regret  Algorithm 1 on locks of growing horizon, beside no bonus and Q-learning

mulv theory COMMAND --help lists a command's options.
"""


@dataclass(frozen=True)
class TheoryCheckOptions:
    """Whether the theory applies to a POMDP, and whether its claims hold there, for random policies."""

    pomdp: tyro.conf.Positional[str]
    """A .pomdp or .pomdpx file, or a name of the zoo: lock, random-decodable, t-maze, tiger, ..."""
    L: int = 3
    """Observations in a window."""
    horizon: int | None = None
    """Decisions in an episode; the POMDP's own, or 2L + 1."""
    seed: int = 0
    """Seed of the policies."""
    json: bool = False
    """Print the figures as one JSON object on the last line."""


def parse_theory_check(arguments: Sequence[str]) -> TheoryCheckOptions:
    """The options of `mulv theory check`."""
    return tyro.cli(TheoryCheckOptions, args=list(arguments), prog="mulv theory check")


@dataclass(frozen=True)
class TheorySolveOptions:
    """Plan in a known POMDP: bounds of the optimal value, closed until they are close enough."""

    pomdp: tyro.conf.Positional[str]
    """A .pomdp or .pomdpx file, or a name of the zoo: tiger, hallway, tag, rocksample-7-8, ..."""
    gamma: float | None = None
    """Discount; the POMDP's own."""
    horizon: int | None = None
    """Decisions in an episode, solved exactly; the POMDP's own, if it has any."""
    precision: float = 1e-3
    """How close the bounds shall come."""
    seconds: float = 120.0
    """When to stop before they do."""
    alpha: Path | None = None
    """Write the alpha vectors of the lower bound to this file, in the format of pomdp-solve."""
    json: bool = False
    """Print the figures as one JSON object on the last line."""


def parse_theory_solve(arguments: Sequence[str]) -> TheorySolveOptions:
    """The options of `mulv theory solve`."""
    return tyro.cli(TheorySolveOptions, args=list(arguments), prog="mulv theory solve")


@dataclass(frozen=True)
class TheoryRegretOptions:
    """How many episodes a lock takes as it grows: Algorithm 1, the same without its bonus, and Q-learning.

    Regret is exact: after every round of H episodes the policy is evaluated by dynamic programming.
    """

    pomdp: tyro.conf.Positional[str]
    """lock: the combination lock that takes a memory of L."""
    H: tuple[int, ...] = (10, 20, 40)
    """Decisions in an episode; one lock for each."""
    L: int = 3
    """The lock's L: observations that tell its state."""
    actions: int = 4
    """Digits of the lock; a uniform policy opens it once in actions^(H-1) episodes."""
    window: int | None = None
    """Observations the learners see; L unless told. Fewer cannot open it."""
    episodes: int = 20_000
    """Episodes of each learner, in rounds of H."""
    seeds: int = 10
    """Seeds, learned side by side."""
    alpha: float = 0.1
    """The bonus is min(alpha |p(.|x,a)|, 2), in the norm of the inverse covariance."""
    out: Path = Path("runs/theory-regret")
    """Where regret.csv, regret.json and regret.png are written."""
    json: bool = False
    """Print the figures as one JSON object on the last line."""
    progress: bool = True
    """Show a progress bar."""


def parse_theory_regret(arguments: Sequence[str]) -> TheoryRegretOptions:
    """The options of `mulv theory regret`."""
    return tyro.cli(TheoryRegretOptions, args=list(arguments), prog="mulv theory regret")


def run(arguments: Sequence[str]) -> int:
    """Run one of the three commands; returns the exit code."""
    if not arguments or arguments[0] in ("-h", "--help"):
        print(USAGE, end="")
        return 0 if arguments else 2
    commands = {"check": _check, "solve": _solve, "regret": _regret}
    return lookup("theory command", arguments[0], commands)(arguments[1:])


def _check(arguments: Sequence[str]) -> int:
    options = parse_theory_check(arguments)
    report = check(find_pomdp(options.pomdp), options.L, options.horizon, options.seed)
    print("\n".join(report.table()))
    if options.json:
        print(json.dumps(report.summary()))
    return 0


def _solve(arguments: Sequence[str]) -> int:
    options = parse_theory_solve(arguments)
    pomdp = find_pomdp(options.pomdp)
    if options.gamma is not None:
        pomdp = dataclasses.replace(pomdp, discount=options.gamma)
    if options.alpha is not None and not options.alpha.parent.is_dir():
        raise MulvError(f"there is no directory {options.alpha.parent} to write {options.alpha.name} in")
    sizes = f"{pomdp.states:,} states, {pomdp.actions} actions, {pomdp.observations} observations"
    print(f"{options.pomdp}: {sizes}, discount {pomdp.discount:g}", flush=True)
    with Progress(options.precision, options.seconds) as progress:
        solution = solve(
            pomdp,
            precision=options.precision,
            seconds=options.seconds,
            horizon=options.horizon,
            watch=progress,
        )
    print(_said(solution, options.precision))
    if options.alpha is not None:
        print(f"vectors in {write_alpha(solution.alpha_vectors(), options.alpha)}")
    if options.json:
        print(json.dumps({"name": options.pomdp, **dataclasses.asdict(solution.bounds)}))
    return 0


def _said(solution: Solution, precision: float) -> str:
    """The solution in a sentence."""
    bounds = solution.bounds
    if solution.horizon is not None:
        return f"value {bounds.lower:.6f}, exact over {solution.horizon} decisions, {bounds.seconds:.1f} s"
    why = "" if bounds.gap <= precision else f"; time was up before they were {precision:g} apart"
    return f"value between {bounds.lower:.6f} and {bounds.upper:.6f}, {bounds.seconds:.1f} s{why}"


def _regret(arguments: Sequence[str]) -> int:
    from mulv.bench.regret import write_regret  # only here, because it imports matplotlib

    options = parse_theory_regret(arguments)
    use_compilation_cache()
    written = write_regret(
        options.pomdp,
        options.out,
        horizons=options.H,
        L=options.L,
        actions=options.actions,
        episodes=options.episodes,
        seeds=options.seeds,
        alpha=options.alpha,
        window=options.window,
        progress=options.progress,
    )
    print("\n".join(written.table))
    if options.json:
        print(json.dumps(written.record))
    return 0
