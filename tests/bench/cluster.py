"""A Ray cluster of several nodes in a process of its own: python -m tests.bench.cluster DIRECTORY

Ray forks to start its nodes, which a process with JAX in it must not do. Reads commands from stdin,
`add NAME` and `remove NAME`, answers each with a line, and ends with its stdin. Every node has a disk of
its own, as far as a run can tell: DIRECTORY/NAME is where it keeps temporary files.
"""

import os
import sys
from pathlib import Path
from typing import Any

from ray.cluster_utils import Cluster


def main() -> None:
    root = Path(sys.argv[1])

    def settings(name: str) -> dict[str, str]:
        (root / name).mkdir()
        return {**os.environ, "TMPDIR": str(root / name)}

    head = {"num_cpus": 0, "include_dashboard": False, "env_vars": settings("head")}
    cluster, nodes = Cluster(initialize_head=True, head_node_args=head), dict[str, Any]()
    print(cluster.address, flush=True)
    for line in sys.stdin:
        command, name = line.split()
        if command == "add":
            nodes[name] = cluster.add_node(num_cpus=1, env_vars=settings(name))
        else:  # as if its plug were pulled
            cluster.remove_node(nodes.pop(name), allow_graceful=False)
        print("done", flush=True)
    cluster.shutdown()


if __name__ == "__main__":
    main()
