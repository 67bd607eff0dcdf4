"""From a fault to an alert: collectors and rules detect faults from the state of the cluster alone."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from srearena.cluster.embedded.telemetry.alerts.evaluation import Rules
from tests.collectors.harness import Observed, deployment, service

Fault = Callable[[Observed], None]
SMALL = "{resources: {limits: {cpu: 100m, memory: 64Mi}}}"


def _firing(cluster: Observed) -> set[str]:
    alerts = Rules(cluster.store).alerts_json(cluster.world.clock.now)
    return {alert["labels"]["alertname"] for alert in alerts if alert["state"] == "firing"}


def _healthy(cluster: Observed) -> None:
    """A small application, and time for it to settle."""
    cluster.apply("{apiVersion: v1, kind: Namespace, metadata: {name: shop}}")
    cluster.apply(deployment("web", container=SMALL), "shop")
    cluster.apply(service("web"), "shop")
    cluster.pass_time(120)


def _load(cores: float) -> Fault:
    return lambda cluster: cluster.container(cluster.pods("web", "shop")[0]).meter.load("test", cores)


def _memory(mebibytes: int) -> Fault:
    return lambda cluster: cluster.container(cluster.pods("web", "shop")[0]).meter.set_memory("test", mebibytes << 20)


def _deploy(text: str) -> Fault:
    return lambda cluster: cluster.apply(text, "shop")


FAULTS: dict[str, tuple[Fault, set[str]]] = {
    "a program that crashes": (
        _deploy(deployment("crasher", "busybox:1.36", "exit 1")),
        {"PodStatusError", "KubePodNotReady", "DeploymentNotReady"},
    ),
    "an image that does not exist": (
        _deploy(deployment("lost", "example.org/no/such:image")),
        {"PodStatusError", "PendingPodsDetected"},
    ),
    "a pod too large for every node": (
        _deploy(deployment("vast", container="{resources: {requests: {cpu: 500}}}")),
        {"PodSchedulingFailure", "PendingPodsDetected"},
    ),
    "a wrong target port": (
        lambda cluster: cluster.change("services", "shop", "web", ports=[{"port": 80, "targetPort": 81}]),
        {"ServiceEndpointDown"},
    ),
    "a stopped kubelet": (
        lambda cluster: cluster.nodes.access.stop_kubelet("worker-1"),
        {"KubeletDown", "KubeNodeNotReady"},
    ),
    "a machine without power": (
        lambda cluster: cluster.nodes.access.power_off("worker-2"),
        {"KubeletDown", "KubeNodeNotReady", "TargetDown"},
    ),
    "a full disk": (
        lambda cluster: cluster.nodes.access.fill_disk("worker-1", 0.97),
        {"NodeFilesystemAlmostOutOfSpace", "KubeNodePressure"},
    ),
    "a full table of connections": (
        lambda cluster: cluster.assembly.network.fabric.flows.carry("worker-1", "test", 250_000),
        {"NodeHighConntrackEntriesUsed"},
    ),
    "more work than the quota allows": (_load(0.5), {"ContainerCPUThrottling"}),
    "memory near its limit": (_memory(55), {"ContainerMemoryNearLimit"}),
    "name servers that are gone": (
        lambda cluster: cluster.change("deployments.apps", "kube-system", "coredns", replicas=0),
        {"CoreDNSDown", "ServiceEndpointDown"},
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_raises_its_alerts(cluster: Observed, name: str) -> None:
    fault, expected = FAULTS[name]
    _healthy(cluster)
    assert _firing(cluster) == set()
    fault(cluster)
    cluster.pass_time(600)
    assert expected <= _firing(cluster)


def test_an_alert_ends_with_its_cause(cluster: Observed) -> None:
    _healthy(cluster)
    cluster.nodes.access.stop_kubelet("worker-1")
    cluster.pass_time(300)
    assert "KubeletDown" in _firing(cluster)
    cluster.nodes.access.start_kubelet("worker-1")
    cluster.pass_time(300)
    assert _firing(cluster) == set()
