"""DaemonSets: one pod on every node that will have it."""

from __future__ import annotations

from typing import Any

from .operator import Operator


def daemon_set(image: str = "nginx:1.27", spec: dict[str, Any] | None = None, **template: Any) -> dict[str, Any]:
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "agent"},
        "spec": {
            "selector": {"matchLabels": {"app": "agent"}},
            "template": {
                "metadata": {"labels": {"app": "agent"}},
                "spec": {
                    "terminationGracePeriodSeconds": 1,
                    "containers": [{"name": "agent", "image": image}],
                    **template,
                },
            },
            **(spec or {}),
        },
    }


def nodes(operator: Operator) -> list[str]:
    return sorted(pod["spec"].get("nodeName", "") for pod in operator.pods("app=agent"))


def test_every_worker_gets_one_and_the_control_plane_only_if_tolerated(operator: Operator) -> None:
    operator.apply(daemon_set())
    operator.wait(20)
    row = operator.row("daemonset", "agent")
    assert [row[key] for key in ("DESIRED", "CURRENT", "READY", "UP-TO-DATE", "AVAILABLE")] == ["3"] * 5
    assert nodes(operator) == ["worker-1", "worker-2", "worker-3"]
    toleration = {"key": "node-role.kubernetes.io/control-plane", "operator": "Exists", "effect": "NoSchedule"}
    operator.apply(daemon_set(tolerations=[toleration]))
    operator.wait(40)
    assert nodes(operator) == ["control-plane", "worker-1", "worker-2", "worker-3"]


def test_a_tainted_node_loses_its_pod_and_gets_another_later(operator: Operator) -> None:
    operator.apply(daemon_set())
    operator.wait(20)
    operator.kubectl("taint", "node", "worker-2", "gpu=yes:NoSchedule")
    operator.wait(20)
    assert nodes(operator) == ["worker-1", "worker-2", "worker-3"], "who runs there already may stay"
    assert operator.row("daemonset", "agent")["DESIRED"] == "2"
    operator.kubectl("taint", "node", "worker-2", "gpu-")
    operator.kubectl("taint", "node", "worker-2", "gpu=yes:NoExecute")
    operator.wait(20)
    assert nodes(operator) == ["worker-1", "worker-3"]
    operator.kubectl("taint", "node", "worker-2", "gpu-")
    operator.wait(20)
    assert nodes(operator) == ["worker-1", "worker-2", "worker-3"]


def test_cordoned_nodes_are_no_obstacle(operator: Operator) -> None:
    operator.kubectl("cordon", "worker-1")
    operator.apply(daemon_set())
    operator.wait(20)
    assert nodes(operator) == ["worker-1", "worker-2", "worker-3"]


def test_a_node_selector_picks_the_nodes(operator: Operator) -> None:
    operator.apply(daemon_set(nodeSelector={"disk": "ssd"}))
    operator.wait(10)
    assert operator.row("daemonset", "agent")["DESIRED"] == "0"
    operator.kubectl("label", "node", "worker-3", "disk=ssd")
    operator.wait(20)
    assert nodes(operator) == ["worker-3"]
    operator.kubectl("label", "node", "worker-3", "disk-")
    operator.wait(20)
    assert nodes(operator) == []


def test_a_node_without_room_keeps_its_pod_waiting(operator: Operator) -> None:
    container = {"name": "agent", "image": "nginx:1.27", "resources": {"requests": {"cpu": "100"}}}
    operator.apply(daemon_set(containers=[container]))
    operator.wait(10)
    row = operator.row("daemonset", "agent")
    assert (row["DESIRED"], row["CURRENT"], row["READY"]) == ("3", "3", "0")
    [pod, *_] = operator.pods("app=agent")
    message = operator.condition("PodScheduled", "pod", pod["metadata"]["name"])["message"]
    assert message.startswith(
        "0/4 nodes are available: 1 Insufficient cpu, 3 node(s) didn't satisfy plugin(s) [NodeAffinity]."
    )


def test_an_update_goes_node_by_node(operator: Operator) -> None:
    operator.apply(daemon_set())
    operator.wait(20)
    operator.kubectl("set", "image", "daemonset/agent", "agent=nginx:1.28")
    least = 3
    for _ in range(25):
        operator.wait(1)
        least = min(least, operator.get("daemonset", "agent")["status"].get("numberAvailable", 0))
    assert least == 2
    images = {pod["spec"]["containers"][0]["image"] for pod in operator.pods("app=agent")}
    assert images == {"nginx:1.28"}
    assert "successfully rolled out" in operator.kubectl("rollout", "status", "daemonset/agent")
    operator.kubectl("rollout", "undo", "daemonset/agent")
    operator.wait(30)
    images = {pod["spec"]["containers"][0]["image"] for pod in operator.pods("app=agent")}
    assert images == {"nginx:1.27"}


def test_a_broken_update_stops_at_the_first_node(operator: Operator) -> None:
    operator.apply(daemon_set())
    operator.wait(20)
    operator.kubectl("set", "image", "daemonset/agent", "agent=nginx:1.99")
    operator.wait(60)
    row = operator.row("daemonset", "agent")
    assert (row["DESIRED"], row["READY"], row["UP-TO-DATE"]) == ("3", "2", "1")
    waiting = operator.run("rollout", "status", "daemonset/agent", "--watch=false").out
    assert waiting == 'Waiting for daemon set "agent" rollout to finish: 1 out of 3 new pods have been updated...\n'


def test_on_delete_leaves_the_rollout_to_people(operator: Operator) -> None:
    operator.apply(daemon_set(spec={"updateStrategy": {"type": "OnDelete"}}))
    operator.wait(20)
    operator.kubectl("set", "image", "daemonset/agent", "agent=nginx:1.28")
    operator.wait(20)
    assert operator.row("daemonset", "agent")["UP-TO-DATE"] == "0"
    [pod, *_] = operator.pods("app=agent")
    operator.kubectl("delete", "pod", pod["metadata"]["name"])
    operator.wait(20)
    assert operator.row("daemonset", "agent")["UP-TO-DATE"] == "1"


def test_a_new_node_gets_its_pod(operator: Operator) -> None:
    operator.apply(daemon_set())
    operator.wait(20)
    operator.cluster.nodes.perform("power_off", "worker-3")
    operator.kubectl("delete", "node", "worker-3")
    operator.wait(90)
    assert nodes(operator) == ["worker-1", "worker-2"]
    operator.cluster.nodes.perform("power_on", "worker-3")
    operator.wait(60)
    assert nodes(operator) == ["worker-1", "worker-2", "worker-3"]
    assert operator.row("daemonset", "agent")["READY"] == "3"
