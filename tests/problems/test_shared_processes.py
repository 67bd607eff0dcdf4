"""Containers with a shared process namespace: one can kill the other's process, and the kubelet restarts it."""

from __future__ import annotations

from srearena.cluster import start_embedded
from srearena.service.kubernetes import Kubernetes
from srearena.service.waiting import wait_until

POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "pair"},
    "spec": {
        "shareProcessNamespace": True,
        "containers": [
            {"name": "server", "image": "redis:7.4"},
            {
                "name": "guard",
                "image": "busybox:1.36",
                "command": ["sh", "-c", "sleep 20; pkill -9 redis-server; sleep 9999"],
            },
        ],
    },
}


def test_a_neighbour_kills_the_main_process_and_it_comes_back() -> None:
    with start_embedded(in_process=True, speed=0) as cluster, Kubernetes.of(cluster) as api:
        wait_until(lambda: api.find("serviceaccounts", "default", "default"), cluster.wait, 30)
        api.create(POD, "default")

        def restarts() -> int:
            states = (api.get("pods", "pair", "default").get("status") or {}).get("containerStatuses") or ()
            return next((int(state["restartCount"]) for state in states if state["name"] == "server"), 0)

        wait_until(lambda: restarts() == 1, cluster.wait, 120)
        seen = api.exec("pair", ["ps"], "default", container="guard").output
        assert "redis-server" in seen, "the new process is seen, too"
        assert not any(line.split()[0] == "1" and "redis" in line for line in seen.splitlines()), "it is not process 1"
