"""Objects that are served in two versions are the same object in both."""

from __future__ import annotations

import json
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from srearena.cluster.embedded.registry import autoscaler_versions, event_versions
from srearena.cluster.embedded.registry.errors import ApiError
from tests.strategies.server import options, registry

_TARGET = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
_CPU = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}}
_METRICS: list[dict[str, Any]] = [
    {"type": "Resource", "resource": {"name": "memory", "target": {"type": "AverageValue", "averageValue": "1Gi"}}},
    {
        "type": "Pods",
        "pods": {
            "metric": {"name": "qps", "selector": {"matchLabels": {"a": "b"}}},
            "target": {"type": "AverageValue", "averageValue": "10"},
        },
    },
    {
        "type": "Object",
        "object": {
            "describedObject": {"kind": "Service", "name": "s", "apiVersion": "v1"},
            "metric": {"name": "rate"},
            "target": {"type": "Value", "value": "5"},
        },
    },
    {
        "type": "External",
        "external": {"metric": {"name": "queue"}, "target": {"type": "AverageValue", "averageValue": "3"}},
    },
    {
        "type": "ContainerResource",
        "containerResource": {
            "name": "cpu",
            "container": "web",
            "target": {"type": "Utilization", "averageUtilization": 3},
        },
    },
]


def _autoscaler(metrics: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    spec = {"scaleTargetRef": _TARGET, "minReplicas": 1, "maxReplicas": 5, "metrics": metrics, **more}
    metadata = {"name": "web", "namespace": "shop", "annotations": {"mine": "kept"}}
    kind = {"kind": "HorizontalPodAutoscaler", "apiVersion": "autoscaling/v2"}
    return {**kind, "metadata": metadata, "spec": spec, "status": {"desiredReplicas": 2, "currentReplicas": 2}}


@given(st.lists(st.sampled_from(_METRICS), unique_by=lambda metric: metric["type"]), st.booleans())
def test_a_client_of_the_old_version_loses_nothing(others: list[dict[str, Any]], has_cpu: bool) -> None:
    kept = _autoscaler([*others, _CPU] if has_cpu or not others else others)
    before = deepcopy(kept)
    assert autoscaler_versions.to_v2(autoscaler_versions.to_v1(kept)) == before
    assert kept == before


def test_the_old_version_shows_cpu_and_carries_the_rest_along() -> None:
    behavior = {"scaleDown": {"stabilizationWindowSeconds": 10}}
    shown = autoscaler_versions.to_v1(_autoscaler([_METRICS[0], _CPU], behavior=behavior))
    assert shown["spec"]["targetCPUUtilizationPercentage"] == 50
    assert "metrics" not in shown["spec"]
    annotations = shown["metadata"]["annotations"]
    assert annotations["mine"] == "kept"
    assert json.loads(annotations["autoscaling.alpha.kubernetes.io/metrics"]) == [
        {"type": "Resource", "resource": {"name": "memory", "targetAverageValue": "1Gi"}}
    ]
    assert json.loads(annotations["autoscaling.alpha.kubernetes.io/behavior"]) == {
        "ScaleUp": None,
        "ScaleDown": {
            "StabilizationWindowSeconds": 10,
            "SelectPolicy": None,
            "Policies": None,
            "Tolerance": None,
        },
    }


@pytest.mark.parametrize("text", ["", "{", "[1, null]", '"x"', '{"a": 1}'])
def test_annotations_that_cannot_be_read_are_left_aside(text: str) -> None:
    annotations = {f"autoscaling.alpha.kubernetes.io/{name}": text for name in ("metrics", "behavior", "conditions")}
    obj = {"metadata": {"name": "web", "annotations": annotations}, "spec": {"targetCPUUtilizationPercentage": 7}}
    kept = autoscaler_versions.to_v2(obj)
    assert [metric["type"] for metric in kept["spec"]["metrics"]] == ["Resource"]
    assert "annotations" not in kept["metadata"]


def test_an_autoscaler_written_in_one_version_is_read_in_the_other() -> None:
    where = registry()
    old = where.resources.find("autoscaling", "v1", "horizontalpodautoscalers")
    new = where.resources.find("autoscaling", "v2", "horizontalpodautoscalers")
    assert old and new
    spec = {"scaleTargetRef": _TARGET, "maxReplicas": 4}
    obj = {"apiVersion": "autoscaling/v1", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "web"}, "spec": spec}
    shown = where.create(old, "shop", obj, options())
    assert (shown["apiVersion"], shown["spec"]["targetCPUUtilizationPercentage"]) == ("autoscaling/v1", 80)
    assert where.get(new, "shop", "web")["spec"]["metrics"][0]["resource"]["target"]["averageUtilization"] == 80


_EVENT = {
    "apiVersion": "v1",
    "kind": "Event",
    "metadata": {"name": "e", "namespace": "shop"},
    "involvedObject": {"kind": "Pod", "name": "web", "namespace": "shop"},
    "reason": "Started",
    "message": "Started container web",
    "source": {"component": "kubelet", "host": "node-1"},
    "firstTimestamp": "2024-01-01T00:00:00Z",
    "lastTimestamp": "2024-01-01T00:05:00Z",
    "count": 3,
    "type": "Normal",
    "eventTime": None,
    "reportingComponent": "",
    "reportingInstance": "",
}


def test_an_event_has_the_same_content_under_new_names() -> None:
    shown = event_versions.from_core(_EVENT)
    assert shown["apiVersion"] == "events.k8s.io/v1"
    assert (shown["note"], shown["deprecatedCount"], shown["regarding"]["name"]) == ("Started container web", 3, "web")
    assert shown["deprecatedSource"] == {"component": "kubelet", "host": "node-1"}
    assert not {"message", "count", "involvedObject", "source", "reportingController"} & set(shown)
    assert event_versions.to_core(shown) == _EVENT


def test_an_event_written_in_the_new_version_is_listed_in_the_core_one() -> None:
    where = registry()
    new, core = where.resources.find("events.k8s.io", "v1", "events"), where.row("events")
    assert new
    obj = {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": "e"},
        "eventTime": "2024-01-01T00:00:00.000000Z",
        "regarding": {"kind": "Pod", "name": "web", "namespace": "shop"},
        "reportingController": "example.com/robot",
        "reportingInstance": "robot-1",
        "action": "Poke",
        "reason": "Poked",
        "note": "poked it",
        "type": "Normal",
    }
    where.create(new, "shop", obj, options())
    (kept,) = where.objects(core, "shop")
    assert (kept["message"], kept["reportingComponent"], kept["firstTimestamp"]) == (
        "poked it",
        "example.com/robot",
        None,
    )


def test_events_of_the_new_version_keep_to_its_fields() -> None:
    where = registry()
    new = where.resources.find("events.k8s.io", "v1", "events")
    assert new
    obj = {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": "e"},
        "type": "Odd",
        "deprecatedCount": 2,
    }
    with pytest.raises(ApiError) as caught:
        where.create(new, "default", obj, options())
    assert [cause["field"] for cause in caught.value.causes] == ["eventTime", "type", "count"]
