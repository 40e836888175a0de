"""`mulv theory check`, `mulv theory solve` and `mulv theory regret`."""

import dataclasses
import json

from mulv.core.errors import MulvError
from mulv.core.names import lookup
from mulv.options import parse_theory_check, parse_theory_regret, parse_theory_solve
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


def theory(arguments: list[str]) -> int:
    """Run one of them; its exit code."""
    if not arguments or arguments[0] in ("-h", "--help"):
        print(USAGE, end="")
        return 0 if arguments else 2
    commands = {"check": _check, "solve": _solve, "regret": _regret}
    return lookup("theory command", arguments[0], commands)(arguments[1:])


def _check(arguments: list[str]) -> int:
    options = parse_theory_check(arguments)
    report = check(find_pomdp(options.pomdp), options.L, options.horizon, options.seed)
    print("\n".join(report.table()))
    if options.json:
        print(json.dumps(report.summary()))
    return 0


def _solve(arguments: list[str]) -> int:
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
    """What was found, in a sentence."""
    bounds = solution.bounds
    if solution.horizon is not None:
        return f"value {bounds.lower:.6f}, exact over {solution.horizon} decisions, {bounds.seconds:.1f} s"
    why = "" if bounds.gap <= precision else f"; time was up before they were {precision:g} apart"
    return f"value between {bounds.lower:.6f} and {bounds.upper:.6f}, {bounds.seconds:.1f} s{why}"


def _regret(arguments: list[str]) -> int:
    from mulv.bench.regret import write_regret  # matplotlib, which the others do without

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
