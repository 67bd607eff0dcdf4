"""Nodes that fall silent, fill up, are cordoned, tainted or come back."""

from __future__ import annotations

from .operator import Operator


def ready(operator: Operator, node: str) -> tuple[str, str]:
    found = operator.condition("Ready", "node", node)
    return found["status"], found["reason"]


def taints(operator: Operator, node: str) -> set[tuple[str, str]]:
    rows = operator.get("node", node)["spec"].get("taints", ())
    return {(row["key"], row["effect"]) for row in rows}


def pinned(operator: Operator, node: str, replicas: int = 1) -> str:
    """A Deployment whose first pod runs on that node; the pod's name."""
    others = [f"worker-{number}" for number in (1, 2, 3) if f"worker-{number}" != node]
    operator.kubectl("cordon", *others)
    operator.kubectl("create", "deployment", "web", "--image=nginx:1.27", f"--replicas={replicas}")
    operator.wait(20)
    operator.kubectl("uncordon", *others)
    operator.kubectl("expose", "deployment", "web", "--port=80")
    [pod, *_] = operator.pods("app=web")
    assert pod["spec"]["nodeName"] == node
    name: str = pod["metadata"]["name"]
    return name


def test_a_silent_node_loses_its_pods_after_five_minutes(operator: Operator) -> None:
    name = pinned(operator, "worker-2")
    operator.cluster.nodes.perform("stop_kubelet", "worker-2")
    operator.wait(30)
    assert operator.row("node", "worker-2")["STATUS"] == "Ready", "nobody has missed it yet"
    operator.wait(30)
    assert operator.row("node", "worker-2")["STATUS"] == "NotReady"
    found = operator.condition("Ready", "node", "worker-2")
    assert (found["status"], found["reason"], found["message"]) == (
        "Unknown",
        "NodeStatusUnknown",
        "Kubelet stopped posting node status.",
    )
    assert operator.condition("MemoryPressure", "node", "worker-2")["status"] == "Unknown"
    assert ("Normal", "NodeNotReady", "Node worker-2 status is now: NodeNotReady") in operator.events("worker-2")
    unreachable = "node.kubernetes.io/unreachable"
    logged = operator.kubectl("logs", "deploy/metrics-server", "-n", "kube-system", "--tail=1")
    refused = "10250: connect: connection refused"
    assert logged.startswith("E") and refused in logged and logged.endswith('node="worker-2"\n')
    assert taints(operator, "worker-2") == {(unreachable, "NoSchedule"), (unreachable, "NoExecute")}
    pod = operator.condition("Ready", "pod", name)
    assert pod["status"] == "False", "its pods are taken out of service at once"
    assert ("Warning", "NodeNotReady", "Node is not ready") in operator.events(name)
    slices = operator.get("endpointslices", "-l", "kubernetes.io/service-name=web")["items"]
    assert not any(e["conditions"]["ready"] for piece in slices for e in piece.get("endpoints") or ())
    assert operator.printed_status(name) == "Running", "nobody knows better"

    operator.wait(330)
    assert operator.printed_status(name) == "Terminating"
    marked = ("Normal", "TaintManagerEviction", f"Marking for deletion Pod default/{name}")
    assert marked in operator.events(name)
    target = operator.condition("DisruptionTarget", "pod", name)
    assert (target["status"], target["reason"]) == ("True", "DeletionByTaintManager")
    assert target["message"] == "Taint manager: deleting due to NoExecute taint"
    pods = {p["metadata"]["name"]: p for p in operator.pods("app=web")}
    [replacement] = set(pods) - {name}
    assert pods[replacement]["spec"]["nodeName"] != "worker-2"
    assert operator.row("deployment", "web")["READY"] == "1/1"

    operator.cluster.nodes.perform("start_kubelet", "worker-2")
    operator.wait(60)
    assert operator.row("node", "worker-2")["STATUS"] == "Ready"
    assert taints(operator, "worker-2") == set()
    assert operator.only_pod("app=web") == replacement, "the old pod could end at last"


def test_a_node_that_comes_back_in_time_keeps_its_pods(operator: Operator) -> None:
    name = pinned(operator, "worker-2")
    operator.cluster.nodes.perform("partition", "worker-2")
    operator.wait(120)
    assert operator.row("node", "worker-2")["STATUS"] == "NotReady"
    assert "Error from server" in operator.fails("logs", name)
    operator.cluster.nodes.perform("heal", "worker-2")
    operator.wait(60)
    assert operator.row("node", "worker-2")["STATUS"] == "Ready"
    events = operator.get("events", "--field-selector=involvedObject.name=worker-2,reason=NodeReady")["items"]
    assert [event["count"] for event in events] == [2], "once when it started, once now"
    row = operator.row("pod", name)
    assert (row["READY"], row["STATUS"], row["RESTARTS"]) == ("1/1", "Running", "0")
    operator.wait(400)
    assert operator.only_pod("app=web") == name
    cancelled = ("Normal", "TaintManagerEviction", f"Cancelling deletion of Pod default/{name}")
    assert cancelled in operator.events(name)


def test_tolerations_decide_how_long_a_pod_stays(operator: Operator) -> None:
    def pod(name: str, seconds: int | None) -> str:
        toleration = "key: node.kubernetes.io/unreachable, operator: Exists, effect: NoExecute"
        if seconds is not None:
            toleration += f", tolerationSeconds: {seconds}"
        return f"""
apiVersion: v1
kind: Pod
metadata: {{name: {name}}}
spec:
  nodeName: worker-3
  tolerations: [{{{toleration}}}]
  containers: [{{name: c, image: "nginx:1.27"}}]
"""

    operator.apply(pod("hasty", 10), pod("patient", 600), pod("loyal", None))
    operator.wait(15)
    operator.cluster.nodes.perform("power_off", "worker-3")
    operator.wait(80)
    assert operator.printed_status("hasty") == "Terminating"
    assert operator.printed_status("patient") == "Running"
    operator.wait(600)
    assert operator.printed_status("patient") == "Terminating"
    assert operator.printed_status("loyal") == "Running"


def test_a_rebooted_node_restarts_its_containers(operator: Operator) -> None:
    name = pinned(operator, "worker-1")
    operator.cluster.nodes.perform("reboot", "worker-1", seconds=60)
    operator.wait(120)
    assert operator.row("node", "worker-1")["STATUS"] == "Ready"
    row = operator.row("pod", name)
    assert (row["READY"], row["STATUS"]) == ("1/1", "Running")
    assert row["RESTARTS"].startswith("1 (")
    last = operator.container(name)["lastState"]["terminated"]
    assert (last["reason"], last["exitCode"]) == ("Unknown", 255)
    assert any(reason == "Rebooted" for reason in operator.reasons("worker-1"))


def test_a_full_disk_evicts_pods_and_keeps_others_away(operator: Operator) -> None:
    operator.apply("""
apiVersion: apps/v1
kind: Deployment
metadata: {name: greedy}
spec:
  selector: {matchLabels: {app: greedy}}
  template:
    metadata: {labels: {app: greedy}}
    spec:
      containers:
      - name: c
        image: busybox:1.36
        command: [sh, -c, "dd if=/dev/zero of=/tmp/file bs=1M count=2000 2>/dev/null; sleep 36000"]
""")
    operator.wait(60)
    [pod] = operator.pods("app=greedy")
    name, node = pod["metadata"]["name"], pod["spec"]["nodeName"]
    operator.cluster.nodes.perform("fill_disk", node, share=0.95)
    operator.wait(60)
    pressure = operator.condition("DiskPressure", "node", node)
    assert (pressure["status"], pressure["reason"], pressure["message"]) == (
        "True",
        "KubeletHasDiskPressure",
        "kubelet has disk pressure",
    )
    assert ("node.kubernetes.io/disk-pressure", "NoSchedule") in taints(operator, node)
    row = operator.row("pod", name)
    assert (row["READY"], row["STATUS"]) == ("0/1", "Error"), "which is how its container ended"
    assert "Reason:           Evicted" in operator.kubectl("describe", "pod", name)
    status = operator.get("pod", name)["status"]
    assert (status["phase"], status["reason"]) == ("Failed", "Evicted")
    assert status["message"].startswith("The node was low on resource: ephemeral-storage. Threshold quantity: ")
    assert (
        "Container c was using 2000Mi, request is 0, has larger consumption of ephemeral-storage. "
        in (status["message"])
    )
    assert "Evicted" in operator.reasons(name)
    assert "EvictionThresholdMet" in operator.reasons(node)
    assert operator.row("deployment", "greedy")["READY"] == "1/1"
    alive = [p for p in operator.pods("app=greedy") if p["status"]["phase"] == "Running"]
    assert [p["spec"]["nodeName"] != node for p in alive] == [True]
    operator.cluster.nodes.perform("fill_disk", node, share=0)
    operator.wait(400)
    assert operator.condition("DiskPressure", "node", node)["status"] == "False"
    assert taints(operator, node) == set()
    assert operator.get("pod", name)["status"]["reason"] == "Evicted", "what failed stays for people to look at"


def test_memory_that_runs_out_evicts_who_asked_for_least(operator: Operator) -> None:
    operator.apply("""
apiVersion: v1
kind: Pod
metadata: {name: modest}
spec:
  nodeName: worker-1
  containers: [{name: c, image: "nginx:1.27", resources: {requests: {memory: 200Mi}}}]
---
apiVersion: v1
kind: Pod
metadata: {name: hog}
spec:
  nodeName: worker-1
  containers:
  - {name: c, image: polinux/stress, command: [stress, --vm, "1", --vm-bytes, 1G, --vm-hang, "0"]}
""")
    operator.wait(30)
    operator.cluster.nodes.perform("hold_memory", "worker-1", size=15 * 1024**3 - 560 * 1024**2)
    operator.wait(60)
    status = operator.get("pod", "hog")["status"]
    assert (status["phase"], status["reason"]) == ("Failed", "Evicted")
    message = status["message"]
    assert message.startswith("The node was low on resource: memory. Threshold quantity: 100Mi, available: ")
    assert operator.printed_status("modest") == "Running"


def test_cordon_keeps_new_pods_away_and_old_ones_in_place(operator: Operator) -> None:
    name = pinned(operator, "worker-1")
    assert operator.kubectl("cordon", "worker-1") == "node/worker-1 cordoned\n"
    assert ("node.kubernetes.io/unschedulable", "NoSchedule") in taints(operator, "worker-1")
    operator.kubectl("scale", "deployment", "web", "--replicas=6")
    operator.wait(30)
    nodes = [pod["spec"]["nodeName"] for pod in operator.pods("app=web")]
    assert nodes.count("worker-1") == 1
    assert operator.printed_status(name) == "Running"
    assert ("Normal", "NodeNotSchedulable", "Node worker-1 status is now: NodeNotSchedulable") in operator.events(
        "worker-1"
    )
    assert operator.kubectl("uncordon", "worker-1") == "node/worker-1 uncordoned\n"
    operator.wait(15)
    assert taints(operator, "worker-1") == set()
    assert "NodeSchedulable" in operator.reasons("worker-1")


def test_a_no_execute_taint_drives_pods_off_at_once(operator: Operator) -> None:
    name = pinned(operator, "worker-1")
    operator.kubectl("taint", "node", "worker-1", "maintenance=now:NoExecute")
    operator.wait(20)
    [pod] = operator.pods("app=web")
    assert pod["metadata"]["name"] != name
    assert pod["spec"]["nodeName"] != "worker-1"
    marked = ("Normal", "TaintManagerEviction", f"Marking for deletion Pod default/{name}")
    assert marked in operator.events(name)
    system = operator.get("pods", "-n", "kube-system", "--field-selector=spec.nodeName=worker-1")["items"]
    owners = {pod["metadata"]["ownerReferences"][0]["name"] for pod in system}
    assert owners == {"kindnet", "kube-proxy", "node-exporter"}, "which tolerate everything"
    operator.kubectl("taint", "node", "worker-1", "maintenance-")


def test_a_deleted_node_takes_its_pods_along_and_its_kubelet_registers_again(operator: Operator) -> None:
    name = pinned(operator, "worker-2")
    operator.cluster.nodes.perform("power_off", "worker-2")
    operator.kubectl("delete", "node", "worker-2")
    operator.wait(120)
    assert operator.run("get", "pod", name).code != 0
    assert operator.row("deployment", "web")["READY"] == "1/1"
    operator.cluster.nodes.perform("power_on", "worker-2")
    operator.wait(60)
    assert operator.row("node", "worker-2")["STATUS"] == "Ready"
