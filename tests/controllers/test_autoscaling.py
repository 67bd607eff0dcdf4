"""The horizontal autoscaler: following load, holding back, and saying why it cannot."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from srearena.cluster.embedded.controllers.horizontal_autoscaler import HorizontalAutoscaler
from srearena.cluster.embedded.objects import Obj, name_of
from tests.controllers.bench import Bench, template, workload

HPA = "horizontalpodautoscalers.autoscaling"
DEPLOYMENTS = "deployments.apps"
CPU = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}}


@dataclass
class Use:
    cores: float
    working_set: int
    at: float
    window: float = 15.0


class Load:
    """A total load in cores, shared by whoever runs."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.total = 0.0
        self.memory = 0
        self.unknown: set[str] = set()

    def pod_usage(self, pod: Obj) -> Mapping[str, Use] | None:
        running = [p for p in self.bench.pods() if p["status"]["phase"] == "Running"]
        if name_of(pod) in self.unknown or pod["status"]["phase"] != "Running":
            return None
        return {"main": Use(self.total / len(running), self.memory, self.bench.world.clock.now)}


@pytest.fixture
def load(bench: Bench) -> Load:
    found = bench.controllers["horizontal-pod-autoscaler"]
    assert isinstance(found, HorizontalAutoscaler)
    found.metrics = load = Load(bench)
    return load


def deploy(bench: Bench, replicas: int = 2, requests: Obj | None = None, name: str = "web") -> None:
    body = template(labels={"app": name}, resources={"requests": {"cpu": "1"} if requests is None else requests})
    bench.create(DEPLOYMENTS, workload(name, replicas=replicas, template=body))
    bench.advance(60)


def scale(bench: Bench, name: str = "web", target: str = "web", **spec: Any) -> None:
    reference = {"apiVersion": "apps/v1", "kind": "Deployment", "name": target}
    body = {"scaleTargetRef": reference, "minReplicas": 1, "maxReplicas": 10, "metrics": [CPU], **spec}
    bench.create(HPA, {"metadata": {"name": name}, "spec": body})


def replicas(bench: Bench) -> int:
    found: int = bench.the(DEPLOYMENTS, "web")["spec"]["replicas"]
    return found


def test_load_above_target_adds_replicas(bench: Bench, load: Load) -> None:
    deploy(bench)
    load.total = 2.0  # two pods at 100 %, wanted 50 %
    scale(bench)
    bench.advance(14)
    assert replicas(bench) == 2
    bench.advance(2)
    assert replicas(bench) == 4
    assert bench.condition(HPA, "web", "AbleToScale") == (
        "True",
        "SucceededRescale",
        "the HPA controller was able to update the target scale to 4",
    )
    assert bench.condition(HPA, "web", "ScalingActive") == (
        "True",
        "ValidMetricFound",
        "the HPA was able to successfully calculate a replica count from cpu resource utilization "
        "(percentage of request)",
    )
    text = "New size: 4; reason: cpu resource utilization (percentage of request) above target"
    assert bench.events(HPA, "web") == [("Normal", "SuccessfulRescale", text)]
    assert bench.sources("SuccessfulRescale") == {"horizontal-pod-autoscaler"}
    status = bench.the(HPA, "web")["status"]
    assert (status["currentReplicas"], status["desiredReplicas"]) == (2, 4)
    assert status["currentMetrics"] == [
        {"type": "Resource", "resource": {"name": "cpu", "current": {"averageUtilization": 100, "averageValue": "1"}}}
    ]


def test_within_a_tenth_of_the_target_nothing_moves(bench: Bench, load: Load) -> None:
    deploy(bench)
    load.total = 1.09
    scale(bench)
    bench.advance(120)
    assert replicas(bench) == 2
    assert bench.condition(HPA, "web", "AbleToScale") == (
        "True",
        "ReadyForNewScale",
        "recommended size matches current size",
    )
    assert bench.condition(HPA, "web", "ScalingLimited") == (
        "False",
        "DesiredWithinRange",
        "the desired count is within the acceptable range",
    )


def test_without_behavior_it_at_most_doubles_at_once(bench: Bench, load: Load) -> None:
    deploy(bench, 3)
    load.total = 30.0
    scale(bench, maxReplicas=50)
    bench.advance(16)
    assert replicas(bench) == 6
    assert bench.condition(HPA, "web", "ScalingLimited") == (
        "True",
        "ScaleUpLimit",
        "the desired replica count is increasing faster than the maximum scale rate",
    )


def test_the_maximum_is_a_limit(bench: Bench, load: Load) -> None:
    deploy(bench, 3)
    load.total = 30.0
    scale(bench, maxReplicas=5)
    bench.advance(16)
    assert replicas(bench) == 5
    assert bench.condition(HPA, "web", "ScalingLimited") == (
        "True",
        "TooManyReplicas",
        "the desired replica count is more than the maximum replica count",
    )


def test_shrinking_waits_five_minutes(bench: Bench, load: Load) -> None:
    deploy(bench, 4)
    load.total = 0.1
    scale(bench, minReplicas=2)
    bench.advance(280)
    assert replicas(bench) == 4
    assert bench.condition(HPA, "web", "AbleToScale") == (
        "True",
        "ScaleDownStabilized",
        "recent recommendations were higher than current one, applying the highest recent recommendation",
    )
    bench.advance(60)
    assert replicas(bench) == 2
    assert bench.condition(HPA, "web", "ScalingLimited") == (
        "True",
        "TooFewReplicas",
        "the desired replica count is less than the minimum replica count",
    )
    assert ("Normal", "SuccessfulRescale", "New size: 2; reason: All metrics below target") in bench.events(HPA, "web")


def test_policies_set_the_pace(bench: Bench, load: Load) -> None:
    deploy(bench, 2)
    load.total = 30.0
    up = {"policies": [{"type": "Pods", "value": 1, "periodSeconds": 60}]}
    scale(bench, maxReplicas=50, behavior={"scaleUp": up})
    bench.advance(16)
    assert replicas(bench) == 3
    bench.advance(30)
    assert replicas(bench) == 3
    bench.advance(31)
    assert replicas(bench) == 4


def test_a_short_window_lets_it_shrink_sooner(bench: Bench, load: Load) -> None:
    deploy(bench, 4)
    load.total = 0.1
    scale(bench, behavior={"scaleDown": {"stabilizationWindowSeconds": 30}})
    bench.advance(61)
    assert replicas(bench) == 1


def test_disabled_shrinking_never_happens(bench: Bench, load: Load) -> None:
    deploy(bench, 4)
    load.total = 0.1
    scale(bench, behavior={"scaleDown": {"selectPolicy": "Disabled", "stabilizationWindowSeconds": 0}})
    bench.advance(600)
    assert replicas(bench) == 4


def test_a_missing_request_is_named(bench: Bench, load: Load) -> None:
    deploy(bench, 1, requests={})
    load.total = 1.0
    scale(bench)
    bench.advance(16)
    (pod,) = bench.pods()
    cause = f"failed to get cpu utilization: missing request for cpu in container main of Pod {name_of(pod)}"
    assert bench.condition(HPA, "web", "ScalingActive") == (
        "False",
        "FailedGetResourceMetric",
        f"the HPA was unable to compute the replica count: {cause}",
    )
    summary = f"invalid metrics (1 invalid out of 1), first error is: failed to get cpu resource metric value: {cause}"
    assert bench.events(HPA, "web") == [
        ("Warning", "FailedGetResourceMetric", cause),
        ("Warning", "FailedComputeMetricsReplicas", summary),
    ]


def test_without_measurements_it_says_so(bench: Bench, load: Load) -> None:
    deploy(bench)
    load.unknown = {name_of(pod) for pod in bench.pods()}
    scale(bench)
    bench.advance(16)
    found = bench.condition(HPA, "web", "ScalingActive")
    assert found is not None
    assert found[2].endswith("unable to get metrics for resource cpu: no metrics returned from resource metrics API")
    assert replicas(bench) == 2


def test_without_a_metrics_server_the_api_is_not_found(bench: Bench) -> None:
    deploy(bench)
    scale(bench)
    bench.advance(16)
    found = bench.condition(HPA, "web", "ScalingActive")
    assert found is not None
    assert found[2].endswith(
        "unable to fetch metrics from resource metrics API: "
        "the server could not find the requested resource (get pods.metrics.k8s.io)"
    )


def test_pods_that_are_still_starting_do_not_count(bench: Bench, load: Load) -> None:
    deploy(bench, 2)
    bench.kubelets.fails = lambda pod: True
    load.total = 1.0
    scale(bench, minReplicas=1)
    bench.change(DEPLOYMENTS, "web", spec__replicas=4)
    bench.advance(16)
    load.total = 4.0  # each of four runs at 100 %, but two are not ready
    bench.advance(15)
    assert replicas(bench) == 4  # 2 x 100 % over 4 pods is just the target


def test_unmeasured_pods_count_against_shrinking(bench: Bench, load: Load) -> None:
    deploy(bench, 4)
    load.unknown = {name_of(pod) for pod in bench.pods()[:2]}
    load.total = 0.4  # 10 % each
    scale(bench, behavior={"scaleDown": {"stabilizationWindowSeconds": 0}})
    bench.advance(31)
    assert replicas(bench) == 4


def test_a_scale_of_zero_switches_it_off(bench: Bench, load: Load) -> None:
    deploy(bench, 0)
    scale(bench)
    bench.advance(31)
    assert bench.condition(HPA, "web", "ScalingActive") == (
        "False",
        "ScalingDisabled",
        "scaling is disabled since the replica count of the target is zero",
    )
    assert replicas(bench) == 0


def test_sizes_out_of_bounds_are_corrected(bench: Bench, load: Load) -> None:
    deploy(bench, 1)
    scale(bench, minReplicas=3)
    bench.advance(16)
    assert replicas(bench) == 3
    text = "New size: 3; reason: Current number of replicas below Spec.MinReplicas"
    assert bench.events(HPA, "web") == [("Normal", "SuccessfulRescale", text)]


def test_a_missing_target_is_reported(bench: Bench) -> None:
    scale(bench, target="ghost")
    bench.advance(16)
    message = 'deployments.apps "ghost" not found'
    assert bench.condition(HPA, "web", "AbleToScale") == (
        "False",
        "FailedGetScale",
        f"the HPA controller was unable to get the target's current scale: {message}",
    )
    assert bench.events(HPA, "web") == [("Warning", "FailedGetScale", message)]


def test_two_autoscalers_for_the_same_pods_are_refused(bench: Bench, load: Load) -> None:
    deploy(bench)
    scale(bench, "one")
    scale(bench, "two")
    bench.advance(16)
    assert bench.condition(HPA, "one", "ScalingActive") == (
        "False",
        "AmbiguousSelector",
        "pods by selector app=web are controlled by multiple HPAs: [default/one default/two]",
    )


def test_memory_by_value_and_by_container(bench: Bench, load: Load) -> None:
    deploy(bench, 2)
    load.memory = 300 * 2**20
    by_value = {"name": "memory", "target": {"type": "AverageValue", "averageValue": "100Mi"}}
    scale(bench, metrics=[{"type": "ContainerResource", "containerResource": {**by_value, "container": "main"}}])
    bench.advance(16)
    assert replicas(bench) == 4
    bench.advance(60)
    assert replicas(bench) == 10
    (shown,) = bench.the(HPA, "web")["status"]["currentMetrics"]
    assert shown == {
        "type": "ContainerResource",
        "containerResource": {"name": "memory", "container": "main", "current": {"averageValue": "314572800"}},
    }


@pytest.mark.parametrize(
    ("metric", "reason", "message"),
    [
        (
            {
                "type": "Pods",
                "pods": {"metric": {"name": "rps"}, "target": {"type": "AverageValue", "averageValue": "10"}},
            },
            "FailedGetPodsMetric",
            "unable to get metric rps: unable to fetch metrics from custom metrics API: "
            "no custom metrics API (custom.metrics.k8s.io) registered",
        ),
        (
            {
                "type": "External",
                "external": {"metric": {"name": "queue"}, "target": {"type": "AverageValue", "averageValue": "30"}},
            },
            "FailedGetExternalMetric",
            "unable to get external metric default/queue/nil: unable to fetch metrics from external metrics API: "
            "the server could not find the requested resource (get queue.external.metrics.k8s.io)",
        ),
    ],
)
def test_metrics_nobody_serves_are_told(bench: Bench, load: Load, metric: Obj, reason: str, message: str) -> None:
    deploy(bench)
    scale(bench, metrics=[metric])
    bench.advance(16)
    text = f"the HPA was unable to compute the replica count: {message}"
    assert bench.condition(HPA, "web", "ScalingActive") == ("False", reason, text)


def test_one_failing_metric_still_lets_it_grow(bench: Bench, load: Load) -> None:
    deploy(bench)
    load.total = 2.0
    pods = {"metric": {"name": "rps"}, "target": {"type": "AverageValue", "averageValue": "10"}}
    scale(bench, metrics=[{"type": "Pods", "pods": pods}, CPU])
    bench.advance(16)
    assert replicas(bench) == 4


def test_a_container_metric_that_fails_is_named_by_its_container(bench: Bench, load: Load) -> None:
    deploy(bench, requests={"memory": "1Gi"})
    target = {"type": "Utilization", "averageUtilization": 50}
    scale(
        bench,
        metrics=[
            {"type": "ContainerResource", "containerResource": {"name": "cpu", "container": "main", "target": target}}
        ],
    )
    bench.advance(60)
    messages = {message for _, reason, message in bench.events(HPA, "web") if reason == "FailedComputeMetricsReplicas"}
    assert messages and all(
        "failed to get main container metric value: failed to get cpu utilization: missing request for cpu in container"
        in message
        for message in messages
    )


def test_a_pod_that_asks_as_a_whole_is_measured_as_a_whole(bench: Bench, load: Load) -> None:
    body = template(labels={"app": "web"})
    body["spec"]["resources"] = {"requests": {"cpu": "1"}}
    bench.create(DEPLOYMENTS, workload("web", replicas=2, template=body))
    bench.advance(360)
    load.total = 2.0
    scale(bench)
    bench.advance(60)
    assert bench.the(DEPLOYMENTS, "web")["spec"]["replicas"] == 4
