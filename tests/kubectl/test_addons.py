"""Pods of the cluster's own add-ons: CNI plugin, volume provisioner, node exporter."""

from __future__ import annotations

import httpx

from .operator import Operator
from .test_storage import claim, user

SYSTEM = ("-n", "kube-system")


def targets(operator: Operator) -> dict[str, tuple[str, float]]:
    """Per node, the pod of its node exporter and whether it is up."""
    endpoints = operator.cluster.telemetry
    answer = httpx.get(
        f"{endpoints.prometheus}/api/v1/query",
        params={"query": 'up{job="node-exporter"}'},
        headers={"authorization": f"Bearer {endpoints.token}"},
    ).json()
    rows = answer["data"]["result"]
    return {row["metric"]["instance"]: (row["metric"]["pod"], float(row["value"][1])) for row in rows}


def exporters(operator: Operator) -> dict[str, str]:
    pods = operator.pods("app.kubernetes.io/name=node-exporter", namespace="kube-system")
    return {pod["spec"]["nodeName"]: pod["metadata"]["name"] for pod in pods}


def test_every_node_has_its_pods_and_the_exporter_is_the_target(operator: Operator) -> None:
    for name in ("kindnet", "kube-proxy", "node-exporter"):
        assert operator.row("daemonset", name, "-n", "kube-system")["READY"] == "4"
    assert targets(operator) == {node: (pod, 1.0) for node, pod in exporters(operator).items()}
    logged = operator.kubectl("logs", "daemonset/kindnet", *SYSTEM)
    assert "connected to apiserver" in logged


def test_an_exporter_that_is_gone_is_no_target_and_its_successor_is_another(operator: Operator) -> None:
    before = exporters(operator)["worker-1"]
    operator.kubectl("delete", "pod", before, *SYSTEM, "--wait=false")
    operator.wait(45)
    after = exporters(operator)["worker-1"]
    assert after != before and targets(operator)["worker-1"] == (after, 1.0)
    selector = '{"spec": {"template": {"spec": {"nodeSelector": {"disk": "none"}}}}}'
    operator.kubectl("patch", "daemonset", "node-exporter", *SYSTEM, "-p", selector)
    operator.wait(400)
    assert targets(operator) == {}


def test_claims_wait_for_the_provisioner(operator: Operator) -> None:
    operator.kubectl("scale", "deployment", "local-path-provisioner", *SYSTEM, "--replicas=0")
    operator.wait(30)
    operator.apply(claim(), user())
    operator.wait(60)
    assert operator.row("pvc", "data")["STATUS"] == "Pending"
    assert operator.printed_status("app") == "Pending"
    operator.kubectl("scale", "deployment", "local-path-provisioner", *SYSTEM, "--replicas=1")
    operator.wait(60)
    assert operator.row("pvc", "data")["STATUS"] == "Bound"
    assert operator.printed_status("app") == "Running"
    volume = operator.get("pvc", "data")["spec"]["volumeName"]
    logged = operator.kubectl("logs", "deployment/local-path-provisioner", *SYSTEM)
    assert f"Volume {volume} has been created on" in logged
