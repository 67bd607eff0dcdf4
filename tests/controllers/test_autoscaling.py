"""The horizontal autoscaler: following load, holding back, and saying why it cannot."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from srearena.cluster.embedded.controllers.horizontal_autoscaler import HorizontalAutoscaler
from srearena.cluster.embedded.objects import Obj, name_of
from tests.controllers.stage import Stage, template, workload

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

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.total = 0.0
        self.memory = 0
        self.unknown: set[str] = set()

    def pod_usage(self, pod: Obj) -> Mapping[str, Use] | None:
        running = [p for p in self.stage.pods() if p["status"]["phase"] == "Running"]
        if name_of(pod) in self.unknown or pod["status"]["phase"] != "Running":
            return None
        return {"main": Use(self.total / len(running), self.memory, self.stage.world.clock.now)}


@pytest.fixture
def load(stage: Stage) -> Load:
    found = stage.controllers["horizontal-pod-autoscaler"]
    assert isinstance(found, HorizontalAutoscaler)
    found.metrics = load = Load(stage)
    return load


def deploy(stage: Stage, replicas: int = 2, requests: Obj | None = None, name: str = "web") -> None:
    body = template(labels={"app": name}, resources={"requests": {"cpu": "1"} if requests is None else requests})
    stage.create(DEPLOYMENTS, workload(name, replicas=replicas, template=body))
    stage.advance(60)


def scale(stage: Stage, name: str = "web", target: str = "web", **spec: Any) -> None:
    reference = {"apiVersion": "apps/v1", "kind": "Deployment", "name": target}
    body = {"scaleTargetRef": reference, "minReplicas": 1, "maxReplicas": 10, "metrics": [CPU], **spec}
    stage.create(HPA, {"metadata": {"name": name}, "spec": body})


def replicas(stage: Stage) -> int:
    found: int = stage.the(DEPLOYMENTS, "web")["spec"]["replicas"]
    return found


def test_load_above_target_adds_replicas(stage: Stage, load: Load) -> None:
    deploy(stage)
    load.total = 2.0  # two pods at 100 %, wanted 50 %
    scale(stage)
    stage.advance(14)
    assert replicas(stage) == 2
    stage.advance(2)
    assert replicas(stage) == 4
    assert stage.condition(HPA, "web", "AbleToScale") == (
        "True",
        "SucceededRescale",
        "the HPA controller was able to update the target scale to 4",
    )
    assert stage.condition(HPA, "web", "ScalingActive") == (
        "True",
        "ValidMetricFound",
        "the HPA was able to successfully calculate a replica count from cpu resource utilization "
        "(percentage of request)",
    )
    text = "New size: 4; reason: cpu resource utilization (percentage of request) above target"
    assert stage.events(HPA, "web") == [("Normal", "SuccessfulRescale", text)]
    assert stage.sources("SuccessfulRescale") == {"horizontal-pod-autoscaler"}
    status = stage.the(HPA, "web")["status"]
    assert (status["currentReplicas"], status["desiredReplicas"]) == (2, 4)
    assert status["currentMetrics"] == [
        {"type": "Resource", "resource": {"name": "cpu", "current": {"averageUtilization": 100, "averageValue": "1"}}}
    ]


def test_within_a_tenth_of_the_target_nothing_moves(stage: Stage, load: Load) -> None:
    deploy(stage)
    load.total = 1.09
    scale(stage)
    stage.advance(120)
    assert replicas(stage) == 2
    assert stage.condition(HPA, "web", "AbleToScale") == (
        "True",
        "ReadyForNewScale",
        "recommended size matches current size",
    )
    assert stage.condition(HPA, "web", "ScalingLimited") == (
        "False",
        "DesiredWithinRange",
        "the desired count is within the acceptable range",
    )


def test_without_behavior_it_at_most_doubles_at_once(stage: Stage, load: Load) -> None:
    deploy(stage, 3)
    load.total = 30.0
    scale(stage, maxReplicas=50)
    stage.advance(16)
    assert replicas(stage) == 6
    assert stage.condition(HPA, "web", "ScalingLimited") == (
        "True",
        "ScaleUpLimit",
        "the desired replica count is increasing faster than the maximum scale rate",
    )


def test_the_maximum_is_a_limit(stage: Stage, load: Load) -> None:
    deploy(stage, 3)
    load.total = 30.0
    scale(stage, maxReplicas=5)
    stage.advance(16)
    assert replicas(stage) == 5
    assert stage.condition(HPA, "web", "ScalingLimited") == (
        "True",
        "TooManyReplicas",
        "the desired replica count is more than the maximum replica count",
    )


def test_shrinking_waits_five_minutes(stage: Stage, load: Load) -> None:
    deploy(stage, 4)
    load.total = 0.1
    scale(stage, minReplicas=2)
    stage.advance(280)
    assert replicas(stage) == 4
    assert stage.condition(HPA, "web", "AbleToScale") == (
        "True",
        "ScaleDownStabilized",
        "recent recommendations were higher than current one, applying the highest recent recommendation",
    )
    stage.advance(60)
    assert replicas(stage) == 2
    assert stage.condition(HPA, "web", "ScalingLimited") == (
        "True",
        "TooFewReplicas",
        "the desired replica count is less than the minimum replica count",
    )
    assert ("Normal", "SuccessfulRescale", "New size: 2; reason: All metrics below target") in stage.events(HPA, "web")


def test_policies_set_the_pace(stage: Stage, load: Load) -> None:
    deploy(stage, 2)
    load.total = 30.0
    up = {"policies": [{"type": "Pods", "value": 1, "periodSeconds": 60}]}
    scale(stage, maxReplicas=50, behavior={"scaleUp": up})
    stage.advance(16)
    assert replicas(stage) == 3
    stage.advance(30)
    assert replicas(stage) == 3
    stage.advance(31)
    assert replicas(stage) == 4


def test_a_short_window_lets_it_shrink_sooner(stage: Stage, load: Load) -> None:
    deploy(stage, 4)
    load.total = 0.1
    scale(stage, behavior={"scaleDown": {"stabilizationWindowSeconds": 30}})
    stage.advance(61)
    assert replicas(stage) == 1


def test_disabled_shrinking_never_happens(stage: Stage, load: Load) -> None:
    deploy(stage, 4)
    load.total = 0.1
    scale(stage, behavior={"scaleDown": {"selectPolicy": "Disabled", "stabilizationWindowSeconds": 0}})
    stage.advance(600)
    assert replicas(stage) == 4


def test_a_missing_request_is_named(stage: Stage, load: Load) -> None:
    deploy(stage, 1, requests={})
    load.total = 1.0
    scale(stage)
    stage.advance(16)
    (pod,) = stage.pods()
    cause = f"failed to get cpu utilization: missing request for cpu in container main of Pod {name_of(pod)}"
    assert stage.condition(HPA, "web", "ScalingActive") == (
        "False",
        "FailedGetResourceMetric",
        f"the HPA was unable to compute the replica count: {cause}",
    )
    summary = f"invalid metrics (1 invalid out of 1), first error is: failed to get cpu resource metric value: {cause}"
    assert stage.events(HPA, "web") == [
        ("Warning", "FailedGetResourceMetric", cause),
        ("Warning", "FailedComputeMetricsReplicas", summary),
    ]


def test_without_measurements_it_says_so(stage: Stage, load: Load) -> None:
    deploy(stage)
    load.unknown = {name_of(pod) for pod in stage.pods()}
    scale(stage)
    stage.advance(16)
    found = stage.condition(HPA, "web", "ScalingActive")
    assert found is not None
    assert found[2].endswith("unable to get metrics for resource cpu: no metrics returned from resource metrics API")
    assert replicas(stage) == 2


def test_without_a_metrics_server_the_api_is_not_found(stage: Stage) -> None:
    deploy(stage)
    scale(stage)
    stage.advance(16)
    found = stage.condition(HPA, "web", "ScalingActive")
    assert found is not None
    assert found[2].endswith(
        "unable to fetch metrics from resource metrics API: "
        "the server could not find the requested resource (get pods.metrics.k8s.io)"
    )


def test_pods_that_are_still_starting_do_not_count(stage: Stage, load: Load) -> None:
    deploy(stage, 2)
    stage.kubelets.fails = lambda pod: True
    load.total = 1.0
    scale(stage, minReplicas=1)
    stage.change(DEPLOYMENTS, "web", spec__replicas=4)
    stage.advance(16)
    load.total = 4.0  # each of four runs at 100 %, but two are not ready
    stage.advance(15)
    assert replicas(stage) == 4  # 2 x 100 % over 4 pods is just the target


def test_unmeasured_pods_count_against_shrinking(stage: Stage, load: Load) -> None:
    deploy(stage, 4)
    load.unknown = {name_of(pod) for pod in stage.pods()[:2]}
    load.total = 0.4  # 10 % each
    scale(stage, behavior={"scaleDown": {"stabilizationWindowSeconds": 0}})
    stage.advance(31)
    assert replicas(stage) == 4


def test_a_scale_of_zero_switches_it_off(stage: Stage, load: Load) -> None:
    deploy(stage, 0)
    scale(stage)
    stage.advance(31)
    assert stage.condition(HPA, "web", "ScalingActive") == (
        "False",
        "ScalingDisabled",
        "scaling is disabled since the replica count of the target is zero",
    )
    assert replicas(stage) == 0


def test_sizes_out_of_bounds_are_corrected(stage: Stage, load: Load) -> None:
    deploy(stage, 1)
    scale(stage, minReplicas=3)
    stage.advance(16)
    assert replicas(stage) == 3
    text = "New size: 3; reason: Current number of replicas below Spec.MinReplicas"
    assert stage.events(HPA, "web") == [("Normal", "SuccessfulRescale", text)]


def test_a_missing_target_is_reported(stage: Stage) -> None:
    scale(stage, target="ghost")
    stage.advance(16)
    message = 'deployments.apps "ghost" not found'
    assert stage.condition(HPA, "web", "AbleToScale") == (
        "False",
        "FailedGetScale",
        f"the HPA controller was unable to get the target's current scale: {message}",
    )
    assert stage.events(HPA, "web") == [("Warning", "FailedGetScale", message)]


def test_two_autoscalers_for_the_same_pods_are_refused(stage: Stage, load: Load) -> None:
    deploy(stage)
    scale(stage, "one")
    scale(stage, "two")
    stage.advance(16)
    assert stage.condition(HPA, "one", "ScalingActive") == (
        "False",
        "AmbiguousSelector",
        "pods by selector app=web are controlled by multiple HPAs: [default/one default/two]",
    )


def test_memory_by_value_and_by_container(stage: Stage, load: Load) -> None:
    deploy(stage, 2)
    load.memory = 300 * 2**20
    by_value = {"name": "memory", "target": {"type": "AverageValue", "averageValue": "100Mi"}}
    scale(stage, metrics=[{"type": "ContainerResource", "containerResource": {**by_value, "container": "main"}}])
    stage.advance(16)
    assert replicas(stage) == 4
    stage.advance(60)
    assert replicas(stage) == 10
    (shown,) = stage.the(HPA, "web")["status"]["currentMetrics"]
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
def test_metrics_nobody_serves_are_told(stage: Stage, load: Load, metric: Obj, reason: str, message: str) -> None:
    deploy(stage)
    scale(stage, metrics=[metric])
    stage.advance(16)
    text = f"the HPA was unable to compute the replica count: {message}"
    assert stage.condition(HPA, "web", "ScalingActive") == ("False", reason, text)


def test_one_failing_metric_still_lets_it_grow(stage: Stage, load: Load) -> None:
    deploy(stage)
    load.total = 2.0
    pods = {"metric": {"name": "rps"}, "target": {"type": "AverageValue", "averageValue": "10"}}
    scale(stage, metrics=[{"type": "Pods", "pods": pods}, CPU])
    stage.advance(16)
    assert replicas(stage) == 4


def test_a_container_metric_that_fails_is_named_by_its_container(stage: Stage, load: Load) -> None:
    deploy(stage, requests={"memory": "1Gi"})
    target = {"type": "Utilization", "averageUtilization": 50}
    scale(
        stage,
        metrics=[
            {"type": "ContainerResource", "containerResource": {"name": "cpu", "container": "main", "target": target}}
        ],
    )
    stage.advance(60)
    told = {message for _, reason, message in stage.events(HPA, "web") if reason == "FailedComputeMetricsReplicas"}
    assert told and all(
        "failed to get main container metric value: failed to get cpu utilization: missing request for cpu in container"
        in message
        for message in told
    )


def test_a_pod_that_asks_as_a_whole_is_measured_as_a_whole(stage: Stage, load: Load) -> None:
    body = template(labels={"app": "web"})
    body["spec"]["resources"] = {"requests": {"cpu": "1"}}
    stage.create(DEPLOYMENTS, workload("web", replicas=2, template=body))
    stage.advance(360)
    load.total = 2.0
    scale(stage)
    stage.advance(60)
    assert stage.the(DEPLOYMENTS, "web")["spec"]["replicas"] == 4
