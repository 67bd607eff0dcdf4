"""Pods that a node turns away although they were bound to it."""

from __future__ import annotations

import pytest

from srearena.cluster.embedded.machine.machine import NodeSpec
from srearena.cluster.embedded.objects import Obj
from tests.kubelet.harness import Lab


@pytest.fixture
def lab() -> Lab:
    taint = {"key": "broken", "value": "yes", "effect": "NoExecute"}
    return Lab(NodeSpec("worker", cpu=2, memory="4Gi", pods=5, taints=[taint]))


TOLERANT = {"tolerations": [{"operator": "Exists"}]}


def refused(lab: Lab, **options: object) -> tuple[str, str]:
    spec: Obj = {**TOLERANT, **options.pop("spec", {})}  # type: ignore[dict-item]
    lab.run("refused", spec=spec, **options)
    lab.pass_time(3)
    status = lab.status("refused")
    assert status["phase"] == "Failed"
    assert lab.messages("refused", status["reason"]) == [status["message"].removeprefix("Pod was rejected: ")]
    assert "containerStatuses" not in status
    return status["reason"], status["message"]


def test_not_enough_cpu(lab: Lab) -> None:
    lab.run("other", spec=TOLERANT, resources={"requests": {"cpu": "1500m"}})
    lab.pass_time(1)
    assert refused(lab, resources={"requests": {"cpu": "1"}}) == (
        "OutOfcpu",
        "Pod was rejected: Node didn't have enough resource: cpu, requested: 1000, used: 1500, capacity: 2000",
    )


def test_not_enough_memory(lab: Lab) -> None:
    reason, message = refused(lab, resources={"requests": {"memory": "8Gi"}})
    assert reason == "OutOfmemory"
    assert f"requested: {8 * 1024**3}, used: 0, capacity: " in message


def test_too_many_pods(lab: Lab) -> None:
    for number in range(5):
        lab.run(f"pod-{number}", spec=TOLERANT)
    lab.pass_time(1)
    assert refused(lab)[0] == "OutOfpods"


def test_a_node_selector_that_does_not_match(lab: Lab) -> None:
    assert refused(lab, spec={"nodeSelector": {"disk": "fast"}}) == (
        "NodeAffinity",
        "Pod was rejected: Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector",
    )


def test_a_host_port_that_is_taken(lab: Lab) -> None:
    ports = [{"containerPort": 80, "hostPort": 8080}]
    lab.run("first", spec=TOLERANT, ports=ports)
    lab.pass_time(6)
    assert refused(lab, ports=ports) == (
        "NodePorts",
        "Pod was rejected: Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports",
    )


def test_a_taint_that_is_not_tolerated(lab: Lab) -> None:
    assert refused(lab, spec={"tolerations": []})[0] == "TaintToleration"


def test_what_a_finished_pod_held_is_free_again(lab: Lab) -> None:
    requests = {"requests": {"cpu": "2"}}
    spec = {**TOLERANT, "restartPolicy": "Never"}
    lab.run("first", "busybox:1.36", command=["true"], resources=requests, spec=spec)
    lab.pass_time(8)
    lab.run("second", resources=requests, spec=TOLERANT)
    lab.pass_time(8)
    assert lab.is_ready("second")


def test_a_refused_pod_does_not_count(lab: Lab) -> None:
    refused(lab, resources={"requests": {"cpu": "3"}})
    lab.run("second", resources={"requests": {"cpu": "2"}}, spec=TOLERANT)
    lab.pass_time(8)
    assert lab.is_ready("second")


def test_a_pod_for_another_operating_system_is_refused(lab: Lab) -> None:
    lab.run("foreign", spec={"os": {"name": "windows"}})
    lab.pass_time(2)
    status = lab.status("foreign")
    assert (status["phase"], status["reason"]) == ("Failed", "PodOSNotSupported")
    assert status["message"] == "Pod was rejected: Failed to admit pod as the OS field doesn't match node OS"
