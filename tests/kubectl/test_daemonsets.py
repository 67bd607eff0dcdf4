"""One pod per node: on tainted nodes too, and only where it belongs."""

from __future__ import annotations

from .operator import Operator

AGENT = """
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent}
spec:
  selector: {matchLabels: {app: agent}}
  template:
    metadata: {labels: {app: agent}}
    spec:
      TOLERATIONS
      containers: [{name: c, image: "busybox:1.36", command: [sleep, 1d]}]
"""
EVERYWHERE = "tolerations: [{operator: Exists}]"


def nodes_of(operator: Operator) -> list[str]:
    return sorted(pod["spec"].get("nodeName", "") for pod in operator.pods("app=agent"))


def test_taints_decide_where_it_runs(operator: Operator) -> None:
    operator.apply(AGENT.replace("TOLERATIONS", ""))
    operator.wait(20)
    assert nodes_of(operator) == ["worker-1", "worker-2", "worker-3"], "the control plane is tainted"
    operator.kubectl("taint", "node", "worker-1", "maintenance=yes:NoExecute")
    operator.wait(60)
    assert nodes_of(operator) == ["worker-2", "worker-3"]
    operator.apply(AGENT.replace("TOLERATIONS", EVERYWHERE))
    operator.wait(90)
    assert nodes_of(operator) == ["control-plane", "worker-1", "worker-2", "worker-3"]
    assert operator.columns("daemonset", "agent")[1][1:6] == ["4", "4", "4", "4", "4"]


def test_a_cordoned_node_keeps_its_agent_and_a_drain_leaves_it(operator: Operator) -> None:
    operator.apply(AGENT.replace("TOLERATIONS", ""))
    operator.wait(20)
    operator.kubectl("cordon", "worker-2")
    operator.kubectl("delete", "pod", "-l", "app=agent", "--wait=false")
    operator.wait(60)
    assert nodes_of(operator) == ["worker-1", "worker-2", "worker-3"]
    refused = operator.fails("drain", "worker-2", "--timeout=5s")
    assert "cannot delete DaemonSet-managed Pods" in refused


def test_a_broken_image_stops_the_rollout_after_one_node(operator: Operator) -> None:
    operator.apply(AGENT.replace("TOLERATIONS", ""))
    operator.wait(20)
    operator.kubectl("set", "image", "daemonset/agent", "c=busybox:nope")
    operator.wait(120)
    states = [
        status["state"].get("waiting", {}).get("reason", "running")
        for pod in operator.pods("app=agent")
        for status in pod["status"]["containerStatuses"]
    ]
    assert sorted(states) == ["ImagePullBackOff", "running", "running"], "one may be unavailable, and one is"
    operator.kubectl("rollout", "undo", "daemonset/agent")
    operator.wait(120)
    assert "successfully rolled out" in operator.kubectl("rollout", "status", "daemonset/agent", "--timeout=5s")
    assert operator.kubectl("rollout", "history", "daemonset/agent").count("<none>") == 2


def test_a_new_node_label_brings_it_there(operator: Operator) -> None:
    operator.apply(AGENT.replace("TOLERATIONS", "nodeSelector: {disk: ssd}"))
    operator.wait(10)
    assert nodes_of(operator) == []
    operator.kubectl("label", "node", "worker-3", "disk=ssd")
    operator.wait(15)
    assert nodes_of(operator) == ["worker-3"]
    operator.kubectl("label", "node", "worker-3", "disk-")
    operator.wait(60)
    assert nodes_of(operator) == []
