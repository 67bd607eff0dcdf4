"""Faults of a cluster fire the usual alerts, fixes resolve them, and a healthy cluster has none."""

from __future__ import annotations

import orjson
import pytest
import yaml

from srearena.cluster.embedded.telemetry.apis import query_apis
from tests.collectors.harness import Observed, deployment, service

NODE = "worker-1"


class Shop(Observed):
    """A healthy web deployment behind a service, and a look at what fires."""

    def __init__(self) -> None:
        super().__init__()
        self.apis = query_apis(self.assembly.telemetry)
        self.apply("{apiVersion: v1, kind: Namespace, metadata: {name: shop}}")
        self.apply(deployment("web", replicas=2), "shop")
        self.apply(service("web"), "shop")
        self.pass_time(120)

    def firing(self) -> set[str]:
        body = orjson.loads(self.apis["alertmanager"].handle("GET", "/api/v2/alerts", {})[2])
        return {alert["labels"]["alertname"] for alert in body}

    def broken_rules(self) -> list[str]:
        body = orjson.loads(self.apis["prometheus"].handle("GET", "/api/v1/rules", {})[2])
        rules = [rule for group in body["data"]["groups"] for rule in group["rules"]]
        return [rule["name"] for rule in rules if rule["health"] != "ok"]


@pytest.fixture
def shop() -> Shop:
    return Shop()


def test_a_healthy_cluster_is_quiet_for_hours(shop: Shop) -> None:
    shop.pass_time(4 * 3600)
    assert shop.firing() == set()
    assert shop.broken_rules() == []
    query = {"query": ['count_over_time(ALERTS{alertstate="firing"}[4h])']}
    assert orjson.loads(shop.apis["prometheus"].handle("GET", "/api/v1/query", query)[2])["data"]["result"] == []


def test_an_image_that_does_not_exist(shop: Shop) -> None:
    shop.apply(deployment("api", image="nowhere.example/api:none"), "shop")
    shop.pass_time(240)
    expected = {"PodStatusError", "PendingPodsDetected", "KubePodNotReady", "DeploymentNotReady"}
    assert shop.firing() == expected | {"KubeDeploymentReplicasMismatch"}
    template = {
        "metadata": {"labels": {"app": "api"}},
        "spec": {"containers": [{"name": "main", "image": "nginx:1.27"}]},
    }
    shop.change("deployments.apps", "shop", "api", template=template)
    shop.pass_time(120)
    assert shop.firing() == set()


def test_a_container_that_crashes(shop: Shop) -> None:
    shop.apply(deployment("api", image="busybox:1.36", command="sleep 2; exit 1"), "shop")
    shop.pass_time(300)
    assert shop.firing() >= {"KubePodCrashLooping", "ContainerRestartingOften", "PodStatusError", "DeploymentNotReady"}


def test_a_pod_no_node_has_room_for(shop: Shop) -> None:
    shop.apply(deployment("api", container="{resources: {requests: {cpu: '500'}}}"), "shop")
    shop.pass_time(60)
    assert "PodSchedulingFailure" in shop.firing()


def test_a_deployment_scaled_to_nothing(shop: Shop) -> None:
    shop.change("deployments.apps", "shop", "web", replicas=0)
    shop.pass_time(120)
    assert shop.firing() == {"DeploymentNotReady"}


def test_a_service_that_leads_nowhere(shop: Shop) -> None:
    shop.change("services", "shop", "web", ports=[{"port": 80, "targetPort": 8080}])
    shop.pass_time(120)
    assert shop.firing() == {"ServiceEndpointDown"}
    shop.change("services", "shop", "web", ports=[{"port": 80, "targetPort": 80}])
    shop.pass_time(60)
    assert shop.firing() == set()


def test_a_node_that_loses_its_power(shop: Shop) -> None:
    shop.nodes.access.power_off(NODE)
    shop.pass_time(180)
    assert shop.firing() >= {"KubeNodeNotReady", "KubeNodeUnreachable", "KubeletDown", "TargetDown"}
    shop.nodes.access.power_on(NODE)
    shop.pass_time(600)
    assert shop.firing() == set()


def test_a_claim_nobody_provides_for(shop: Shop) -> None:
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "none",
        "resources": {"requests": {"storage": "1Gi"}},
    }
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data"}, "spec": spec}
    shop.apply(yaml.safe_dump(claim), "shop")
    shop.pass_time(180)
    assert shop.firing() == {"PersistentVolumeClaimPending"}


def test_a_container_that_needs_more_processor_than_it_may_have(shop: Shop) -> None:
    limits = "{resources: {limits: {cpu: 100m}}}"
    shop.apply(deployment("burner", image="busybox:1.36", command="while true; do :; done", container=limits), "shop")
    shop.pass_time(480)
    assert "ContainerCPUThrottling" in shop.firing()
