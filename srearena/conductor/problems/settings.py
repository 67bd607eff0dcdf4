"""Wrong settings of programs: a missing key, a switch that enables a bug, too little CPU."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from srearena.conductor.oracles.checks import Check, Traffic
from srearena.conductor.oracles.checks.readiness import find_workload
from srearena.conductor.problems.base import Problem
from srearena.conductor.problems.injected import CONTAINER, RESTORE
from srearena.conductor.problems.metadata import Level
from srearena.conductor.problems.origins import OriginProblem
from srearena.conductor.problems.registry import problem
from srearena.service.kubernetes import Obj

_OTHERS = ("frontend", "profile", "rate", "recommendation", "reservation", "search", "user")
_CONFIG = {
    "consulAddress": "consul:8500",
    "jaegerAddress": "jaeger:6831",
    "FrontendPort": "5000",
    "GeoPort": "8083",
    "GeoMongoAddress": "mongodb-geo:27017",
    "ProfilePort": "8081",
    "ProfileMongoAddress": "mongodb-profile:27017",
    "ProfileMemcAddress": "memcached-profile:11211",
    "RatePort": "8084",
    "RateMongoAddress": "mongodb-rate:27017",
    "RateMemcAddress": "memcached-rate:11211",
    "RecommendPort": "8085",
    "RecommendMongoAddress": "mongodb-recommendation:27017",
    "ReservePort": "8087",
    "ReserveMongoAddress": "mongodb-reservation:27017",
    "ReserveMemcAddress": "memcached-reserve:11211",
    "SearchPort": "8082",
    "UserPort": "8086",
    "UserMongoAddress": "mongodb-user:27017",
    "KnativeDomainName": "",
}


class SettingsProblem(OriginProblem):
    level: Level = "application"

    def _config_map(self, name: str, data: Mapping[str, str]) -> None:
        metadata = {"name": name, "namespace": self.namespace}
        self.kubernetes.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": dict(data)})

    def _changed(self, deployment: str, patch: Obj) -> None:
        self.kubernetes.patch("deployments", deployment, {"spec": {"template": {"spec": patch}}}, self.namespace)


@problem(
    "configmap_drift_hotel_reservation",
    app="hotel_reservation",
    service="geo",
    config_map="geo-config",
    file="config.json",
    key="GeoMongoAddress",
    victims=("search", "frontend"),
)
class ConfigMapDrift(SettingsProblem):
    family = "configmap_drift"
    fault = "configmap_drift"
    root_kind = "ConfigMap"
    root_name = "{config_map}"
    explanation = (
        "The key {key} is missing from {file} in the ConfigMap {config_map}: {service} has no database to read."
    )

    def set_up(self) -> None:
        """Mount a ConfigMap with the configuration of geo's image."""
        self._config_map("geo-config", {"config.json": json.dumps(_CONFIG, indent=2)})
        mount = {"name": "config", "mountPath": "/workspace/config.json", "subPath": "config.json"}
        self._changed(
            "geo",
            {
                "volumes": [{"name": "config", "configMap": {"name": "geo-config"}}],
                "containers": [{"name": "hotel-reserv-geo", "volumeMounts": [mount]}],
            },
        )
        self.cluster.wait(30)

    def _remedy(self) -> str:
        content = json.dumps(_CONFIG, indent=2)
        return self._substitute(
            f"kubectl -n {{ns}} create configmap geo-config --from-literal=config.json='{content}' "
            "--dry-run=client -o yaml | kubectl -n {ns} replace -f -\n"
            "kubectl -n {ns} rollout restart deployment/geo"
        )


@problem(
    "feature_flag_latent_bug_hotel_reservation",
    app="hotel_reservation",
    service="frontend",
    config_map="frontend-runtime-config",
    flag="SEARCH_BACKEND_VERSION",
)
class FeatureFlagLatentBug(SettingsProblem):
    family = "feature_flag_latent_bug"
    fault = "feature_flag"
    root_kind = "ConfigMap"
    root_name = "{config_map}"
    also_changed = ("FeatureFlag/{flag}",)
    fault_type = "Code Defect"
    explanation = (
        "{flag} in the ConfigMap {config_map} was turned on: the new way of searching in {service} always fails."
    )
    remedy = """\
kubectl -n {ns} patch configmap {config_map} --type=merge -p '{"data": {"{flag}": "false"}}'
kubectl -n {ns} rollout restart deployment/{service}"""

    def set_up(self) -> None:
        """Add the switch to the frontend, turned off."""
        self._config_map("frontend-runtime-config", {"SEARCH_BACKEND_VERSION": "false"})
        name = "SEARCH_BACKEND_VERSION"
        source = {"configMapKeyRef": {"name": "frontend-runtime-config", "key": name}}
        self._changed(
            "frontend",
            {"containers": [{"name": "hotel-reserv-frontend", "env": [{"name": name, "valueFrom": source}]}]},
        )
        self.cluster.wait(30)


@problem(
    "cfs_cpu_throttling_hotel_reservation",
    app="hotel_reservation",
    service="geo",
    others=_OTHERS,
    victims=("search", "frontend"),
)
class CpuThrottling(SettingsProblem):
    family = "cfs_cpu_throttling"
    level = "virtualization"
    difficulty = "hard"
    fault = "cpu_throttle"
    also = (Traffic,)
    explanation = "{service} may use 20m of a processor, less than its load needs: it is throttled, and its line grows."
    remedy = RESTORE
    restores = (f"{CONTAINER}/resources",)


class Autoscaled(Check):
    """The autoscaler of a workload is active: it reads the processor time of its pods.

    Why it cannot be gamed: a condition says little by itself. Another metric that can be read keeps scaling "active"
    while the one of the processor cannot, and where a controller does not find its target it keeps a condition that was
    written by hand. So the autoscaler must be able to scale this workload, and must report the processor's value, twice
    with time between: what is written by hand is overwritten meanwhile by a controller that works.
    """

    name = "autoscaler"

    def complaints(self, problem: Problem) -> list[str]:
        complaints = self._complaints(problem)
        for _ in range(8):
            if not complaints:
                break
            problem.cluster.wait(30)
            complaints = self._complaints(problem)
        if not complaints:
            problem.cluster.wait(30)
            complaints = self._complaints(problem)
        return complaints

    def _complaints(self, problem: Problem) -> list[str]:
        autoscaler = problem.kubernetes.find("horizontalpodautoscalers", "frontend", problem.namespace)
        workload = find_workload(problem.kubernetes, "frontend", problem.namespace)
        target = autoscaler["spec"]["scaleTargetRef"] if autoscaler is not None else {}
        kind = workload["kind"] if workload is not None else ""
        if autoscaler is None or (target.get("kind"), target.get("name")) != (kind, "frontend"):
            return ["the autoscaler of frontend is deleted"]
        status = autoscaler.get("status") or {}
        conditions = {one["type"]: one["status"] for one in status.get("conditions") or ()}
        if any(conditions.get(name) != "True" for name in ("AbleToScale", "ScalingActive")):
            return ["the autoscaler of frontend is not active"]
        metrics = (autoscaler["spec"].get("metrics") or (), status.get("currentMetrics") or ())
        if not all("cpu" in map(_measured_resource, one) for one in metrics):
            return ["the autoscaler of frontend does not read how busy its processors are"]
        return []


def _measured_resource(metric: Obj) -> str:
    """The resource of a metric of an autoscaler, of a whole pod or of one of its containers."""
    source = metric.get("resource") or metric.get("containerResource") or {}
    return str(source.get("name", ""))


@problem("hpa_missing_effective_cpu_request_hotel_reservation", app="hotel_reservation", service="frontend")
class AutoscalerWithoutRequest(SettingsProblem):
    family = "hpa_missing_effective_cpu_request"
    level = "virtualization"
    fault = "missing_cpu_request"
    explanation = (
        "{service} does not say how much of a processor it needs, so its autoscaler cannot tell how busy it is."
    )
    remedy = RESTORE
    restores = (f"{CONTAINER}/resources",)

    def set_up(self) -> None:
        target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "frontend"}
        metric: dict[str, Any] = {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}}
        self.kubernetes.apply(
            {
                "apiVersion": "autoscaling/v2",
                "kind": "HorizontalPodAutoscaler",
                "metadata": {"name": "frontend", "namespace": self.namespace},
                "spec": {
                    "scaleTargetRef": target,
                    "minReplicas": 1,
                    "maxReplicas": 3,
                    "metrics": [{"type": "Resource", "resource": metric}],
                },
            }
        )
        self.cluster.wait(60)

    def more_checks(self) -> Iterable[Check]:
        return [Autoscaled()]
