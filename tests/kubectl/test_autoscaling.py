"""The horizontal pod autoscaler: what it needs to see, and how it follows the load up and down."""

from __future__ import annotations

from typing import Any

from .operator import Operator


def deployment(requests: dict[str, str] | None, **spec: Any) -> dict[str, Any]:
    """A workload that is busy while the file /load/cores exists."""
    script = "while true; do if [ -f /load/cores ]; then stress --cpu 1 --timeout 15; else sleep 5; fi; done"
    container: dict[str, Any] = {
        "name": "app",
        "image": "polinux/stress",
        "command": ["sh", "-c", script],
        "volumeMounts": [{"name": "load", "mountPath": "/load"}],
        "resources": {"limits": {"memory": "64Mi"}},
    }
    if requests:
        container["resources"]["requests"] = requests
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "app"},
        "spec": {
            "selector": {"matchLabels": {"app": "app"}},
            "template": {
                "metadata": {"labels": {"app": "app"}},
                "spec": {
                    "terminationGracePeriodSeconds": 1,
                    "containers": [container],
                    "volumes": [{"name": "load", "configMap": {"name": "load", "optional": True}}],
                },
            },
            **spec,
        },
    }


def autoscale(operator: Operator, *more: str) -> None:
    operator.kubectl("autoscale", "deployment", "app", "--cpu-percent=50", "--min=1", "--max=4", *more)


def conditions(operator: Operator) -> dict[str, tuple[str, str, str]]:
    rows = operator.get("hpa", "app")["status"]["conditions"]
    return {row["type"]: (row["status"], row["reason"], row["message"]) for row in rows}


def test_it_follows_the_load_up_at_once_and_down_after_five_quiet_minutes(operator: Operator) -> None:
    operator.apply(deployment({"cpu": "500m"}))
    autoscale(operator)
    operator.wait(420)
    row = operator.row("hpa", "app")
    assert (row["TARGETS"], row["MINPODS"], row["MAXPODS"], row["REPLICAS"]) == ("cpu: 0%/50%", "1", "4", "1")
    found = conditions(operator)
    assert found["ScalingActive"] == (
        "True",
        "ValidMetricFound",
        "the HPA was able to successfully calculate a replica count from "
        "cpu resource utilization (percentage of request)",
    )
    assert found["ScalingLimited"][:2] == ("True", "TooFewReplicas")
    operator.kubectl("create", "configmap", "load", "--from-literal=cores=1")
    operator.wait(240)
    row = operator.row("hpa", "app")
    assert row["REPLICAS"] == "4"
    assert 180 <= int(row["TARGETS"].removeprefix("cpu: ").split("%")[0]) <= 210
    assert conditions(operator)["ScalingLimited"] == (
        "True",
        "TooManyReplicas",
        "the desired replica count is more than the maximum replica count",
    )
    assert operator.row("deployment", "app")["READY"] == "4/4"
    grown = [text for _, reason, text in operator.events("app") if reason == "SuccessfulRescale"]
    assert grown[-1] == "New size: 4; reason: cpu resource utilization (percentage of request) above target"

    operator.kubectl("delete", "configmap", "load")
    operator.wait(240)
    assert operator.row("hpa", "app")["REPLICAS"] == "4"
    assert conditions(operator)["AbleToScale"] == (
        "True",
        "ScaleDownStabilized",
        "recent recommendations were higher than current one, applying the highest recent recommendation",
    )
    operator.wait(240)
    assert operator.row("hpa", "app")["REPLICAS"] == "1"
    shrunk = [text for _, reason, text in operator.events("app") if reason == "SuccessfulRescale"]
    assert "New size: 1; reason: All metrics below target" in shrunk


def test_without_a_request_there_is_nothing_to_compare_with(operator: Operator) -> None:
    operator.apply(deployment(None))
    autoscale(operator)
    operator.wait(90)
    row = operator.row("hpa", "app")
    assert (row["TARGETS"], row["REPLICAS"]) == ("cpu: <unknown>/50%", "1")
    pod = operator.only_pod("app=app")
    cause = f"failed to get cpu utilization: missing request for cpu in container app of Pod {pod}"
    assert conditions(operator)["ScalingActive"] == (
        "False",
        "FailedGetResourceMetric",
        f"the HPA was unable to compute the replica count: {cause}",
    )
    events = operator.events("app")
    assert ("Warning", "FailedGetResourceMetric", cause) in events
    summary = "invalid metrics (1 invalid out of 1), first error is: failed to get cpu resource metric value: " + cause
    assert ("Warning", "FailedComputeMetricsReplicas", summary) in events
    operator.kubectl("set", "resources", "deployment/app", "--requests=cpu=200m")
    operator.wait(120)
    assert conditions(operator)["ScalingActive"][:2] == ("True", "ValidMetricFound")
    assert operator.row("hpa", "app")["TARGETS"] == "cpu: 0%/50%"


def test_without_a_metrics_server_it_is_blind(operator: Operator) -> None:
    operator.apply(deployment({"cpu": "500m"}))
    autoscale(operator)
    operator.kubectl("scale", "deployment", "metrics-server", "-n", "kube-system", "--replicas=0")
    operator.wait(60)
    assert operator.row("apiservice", "v1beta1.metrics.k8s.io")["AVAILABLE"] == "False (MissingEndpoints)"
    assert operator.fails("top", "pods") == "error: Metrics API not available\n"
    assert conditions(operator)["ScalingActive"] == (
        "False",
        "FailedGetResourceMetric",
        "the HPA was unable to compute the replica count: failed to get cpu utilization: unable to get metrics for "
        "resource cpu: unable to fetch metrics from resource metrics API: the server is currently unable to handle "
        "the request (get pods.metrics.k8s.io)",
    )
    operator.kubectl("scale", "deployment", "metrics-server", "-n", "kube-system", "--replicas=1")
    operator.wait(120)
    assert operator.row("apiservice", "v1beta1.metrics.k8s.io")["AVAILABLE"] == "True"
    assert conditions(operator)["ScalingActive"][:2] == ("True", "ValidMetricFound")
    assert operator.kubectl("top", "pods").splitlines()[0].split() == ["NAME", "CPU(cores)", "MEMORY(bytes)"]


def test_a_target_that_is_not_there(operator: Operator) -> None:
    operator.apply(deployment({"cpu": "500m"}))
    autoscale(operator)
    operator.kubectl("delete", "deployment", "app")
    operator.wait(30)
    assert conditions(operator)["AbleToScale"] == (
        "False",
        "FailedGetScale",
        'the HPA controller was unable to get the target\'s current scale: deployments.apps "app" not found',
    )
    assert ("Warning", "FailedGetScale", 'deployments.apps "app" not found') in operator.events("app")


def test_a_workload_at_zero_is_left_there(operator: Operator) -> None:
    operator.apply(deployment({"cpu": "500m"}, replicas=0))
    autoscale(operator)
    operator.wait(60)
    assert conditions(operator)["ScalingActive"] == (
        "False",
        "ScalingDisabled",
        "scaling is disabled since the replica count of the target is zero",
    )
    assert operator.pods("app=app") == []


def test_its_bounds_are_enforced_whatever_the_load(operator: Operator) -> None:
    operator.apply(deployment({"cpu": "500m"}, replicas=6))
    autoscale(operator)
    operator.wait(30)
    assert operator.row("deployment", "app")["READY"] == "4/4"
    assert (
        "Normal",
        "SuccessfulRescale",
        "New size: 4; reason: Current number of replicas above Spec.MaxReplicas",
    ) in operator.events("app")
    operator.kubectl("patch", "hpa", "app", "-p", '{"spec":{"minReplicas":5,"maxReplicas":8}}')
    operator.wait(30)
    assert (
        "Normal",
        "SuccessfulRescale",
        "New size: 5; reason: Current number of replicas below Spec.MinReplicas",
    ) in operator.events("app")


def test_memory_can_be_the_measure_too(operator: Operator) -> None:
    operator.apply(
        deployment({"cpu": "100m", "memory": "64Mi"}),
        {
            "apiVersion": "autoscaling/v2",
            "kind": "HorizontalPodAutoscaler",
            "metadata": {"name": "app"},
            "spec": {
                "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "app"},
                "minReplicas": 1,
                "maxReplicas": 3,
                "metrics": [
                    {
                        "type": "Resource",
                        "resource": {"name": "memory", "target": {"type": "AverageValue", "averageValue": "100Mi"}},
                    },
                    {
                        "type": "Pods",
                        "pods": {
                            "metric": {"name": "requests_per_second"},
                            "target": {"type": "AverageValue", "averageValue": "10"},
                        },
                    },
                ],
            },
        },
    )
    operator.wait(90)
    assert operator.row("hpa", "app")["TARGETS"].startswith("memory: ")
    problem = (
        "unable to get metric requests_per_second: unable to fetch metrics from custom metrics API: "
        "no custom metrics API (custom.metrics.k8s.io) registered"
    )
    assert ("Warning", "FailedGetPodsMetric", problem) in operator.events("app")
