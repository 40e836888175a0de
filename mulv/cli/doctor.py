"""`mulv doctor`."""

from collections.abc import Sequence

from mulv.envs.rendering.doctor import examine


def run(arguments: Sequence[str]) -> int:
    """Print which backends can render frames on this machine."""
    if arguments:
        print(
            "usage: mulv doctor\n\nSays what can draw frames here, how fast, and what to install if nothing."
        )
        return 0 if arguments[0] in ("-h", "--help") else 2
    for line in examine():
        print(line, flush=True)
    return 0
