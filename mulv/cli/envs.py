"""`mulv envs`."""

from collections.abc import Sequence

from mulv.envs.listing import pixel_paragraphs, vector_table
from mulv.envs.pomdp_ids import IDS, LOCKS


def run(arguments: Sequence[str]) -> int:
    """Print the tasks."""
    if arguments:
        print("usage: mulv envs\n\nLists the tasks: what an agent sees, what it does, and for how long.")
        return 0 if arguments[0] in ("-h", "--help") else 2
    print("\n".join(vector_table()))
    print("\nTasks of frames, 64x64x3 of uint8, each action taken twice (docs/tasks.md):")
    print("\n".join(pixel_paragraphs()))
    pomdps = ", ".join([*(each.id for each in IDS.values()), *LOCKS])
    print(f"\nAlso finite POMDPs, seen and acted on in whole numbers: {pomdps}.")
    print("Also any Gymnasium id or dm_control domain-task, with --keep 0-4,7 or --keep position,touch.")
    return 0
