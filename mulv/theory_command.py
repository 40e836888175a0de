"""`mulv theory`: its commands."""

import json

from mulv.core.names import lookup


def theory(arguments: list[str]) -> int:
    """Run one of them; returns the exit code."""
    if not arguments or arguments[0] in ("-h", "--help"):
        print(
            "usage: mulv theory check FILE-or-NAME [OPTIONS]\n       mulv theory regret lock [OPTIONS]\n\n"
            "mulv theory check --help and mulv theory regret --help list their options."
        )
        return 0 if arguments else 2
    commands = {"check": _check, "regret": _regret}
    return lookup("theory command", arguments[0], commands)(arguments[1:])


def _check(arguments: list[str]) -> int:
    from mulv.options import parse_theory_check
    from mulv.tabular.check import check
    from mulv.tabular.named import find_pomdp

    options = parse_theory_check(arguments)
    report = check(find_pomdp(options.pomdp), options.L, options.horizon, options.seed)
    print("\n".join(report.table()))
    if options.json:
        print(json.dumps(report.summary()))
    return 0


def _regret(arguments: list[str]) -> int:
    from mulv.bench.regret import write_regret
    from mulv.options import parse_theory_regret
    from mulv.run.runtime import use_compilation_cache

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
