"""A Ray cluster on this machine: says its address, loses a node for every line read, ends with input.

The argument is a JSON list with what is special about each node that works; the head does not.
"""

from __future__ import annotations

import json
import sys

from ray.cluster_utils import Cluster


def main() -> None:
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
    nodes = [cluster.add_node(**{"num_cpus": 1, **node}) for node in json.loads(sys.argv[1])]
    cluster.wait_for_nodes(120)
    print(cluster.address, flush=True)
    for _ in sys.stdin:
        cluster.remove_node(nodes.pop(), allow_graceful=False)
        print("lost", flush=True)
    cluster.shutdown()


if __name__ == "__main__":
    main()
