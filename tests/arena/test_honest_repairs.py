"""Repairs that differ from the reference remedy, as engineers make them, pass all checks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from srearena.conductor.episode.episode import Episode
from srearena.conductor.oracles.base import Verdict
from srearena.conductor.oracles.checks import Check
from srearena.conductor.oracles.mitigation import MitigationOracle
from srearena.conductor.problems.base import Problem
from srearena.conductor.problems.configuration import MissingConfigMap
from srearena.conductor.problems.injected import InjectedProblem
from srearena.conductor.problems.network import NetworkPolicyBlock
from srearena.conductor.problems.probes import LivenessProbeMisconfiguration, ReadinessProbeMisconfiguration
from srearena.conductor.problems.resources import ResourceRequestTooLarge
from srearena.conductor.problems.rollouts import LivenessProbeTooAggressive
from srearena.conductor.problems.scheduling import AssignToNonExistentNode, ScalePodZero, TaintNoToleration
from srearena.conductor.problems.services import WrongServiceSelector
from srearena.conductor.problems.target_port import TargetPort
from srearena.service.kubernetes import Kubernetes, Obj
from tests.arena.episodes import prepared_episode, shop_problem

SHOP = "corner-shop"
CONTAINER = "/spec/template/spec/containers/0"
Repair = Callable[[Kubernetes, Episode], None]


@contextmanager
def broken(kind: type[InjectedProblem], service: str = "api", **options: Any) -> Iterator[tuple[Episode, Kubernetes]]:
    """An episode at the agent's start, and the agent's client."""
    with prepared_episode(shop_problem(kind, service, **options), stages=("mitigation",)) as episode:
        assert episode.kubeconfig is not None
        episode.cluster.set_speed(0)
        with Kubernetes(episode.kubeconfig) as api:
            yield episode, api


def judged(episode: Episode) -> Verdict:
    return Verdict.from_answer(episode.problem.oracle_for("mitigation").evaluate(None))


def edited(name: str, *operations: tuple[str, str, Any]) -> Repair:
    """A JSON patch of a Deployment."""

    def repair(api: Kubernetes, episode: Episode) -> None:
        patch = [
            {"op": verb, "path": path, **({} if verb == "remove" else {"value": value})}
            for verb, path, value in operations
        ]
        api.patch("deployments", name, patch, SHOP)

    return repair


def tolerate_everywhere(api: Kubernetes, episode: Episode) -> None:
    tolerations = [{"key": "dedicated", "operator": "Equal", "value": "batch", "effect": "NoSchedule"}]
    for workload in api.list("deployments", SHOP):
        patch = {"spec": {"template": {"spec": {"tolerations": tolerations}}}}
        api.patch("deployments", workload["metadata"]["name"], patch, SHOP, kind="merge")


def new_service(api: Kubernetes, episode: Episode) -> None:
    """A new Service of the same name; nginx resolves its upstream once, so its pod is replaced."""
    api.delete("services", "api", SHOP)
    spec = {"selector": {"app": "api"}, "ports": [{"port": 8080, "targetPort": 8080}]}
    api.create({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "api"}, "spec": spec}, SHOP)
    api.restart("deployments", "web", SHOP)


def more_replicas(api: Kubernetes, episode: Episode) -> None:
    api.scale("deployments", "api", 3, SHOP)


def autoscaled(api: Kubernetes, episode: Episode) -> None:
    """An autoscaler raises the replicas while the system is watched."""
    api.scale("deployments", "api", 1, SHOP)
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "api"}
    metric = {
        "type": "Resource",
        "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}},
    }
    spec = {"scaleTargetRef": target, "minReplicas": 2, "maxReplicas": 4, "metrics": [metric]}
    kind = {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler"}
    api.create({**kind, "metadata": {"name": "api"}, "spec": spec}, SHOP)


def renamed_settings(api: Kubernetes, episode: Episode) -> None:
    data = {"default.conf": 'server {\n  listen 8080;\n  location / { return 200 "open\\n"; }\n}\n'}
    api.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "api-site-2"}, "data": data}, SHOP)
    volumes = [{"name": "site", "configMap": {"name": "api-site-2"}}]
    api.patch("deployments", "api", [{"op": "replace", "path": "/spec/template/spec/volumes", "value": volumes}], SHOP)


def least_privilege(api: Kubernetes, episode: Episode) -> None:
    """Admit the one client that the API has, and nobody else."""
    for policy in api.list("networkpolicies", SHOP):
        api.delete("networkpolicies", policy["metadata"]["name"], SHOP)
    ingress = [{"from": [{"podSelector": {"matchLabels": {"app": "web"}}}], "ports": [{"port": 8080}]}]
    spec = {"podSelector": {"matchLabels": {"app": "api"}}, "policyTypes": ["Ingress"], "ingress": ingress}
    kind = {"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy"}
    api.create({**kind, "metadata": {"name": "api-clients"}, "spec": spec}, SHOP)


def debug_pods_left(api: Kubernetes, episode: Episode) -> None:
    """Pods that the engineer used to look around, one of them in a crash loop."""
    api.patch("services", "api", [{"op": "replace", "path": "/spec/ports/0/targetPort", "value": 8080}], SHOP)
    for name, command in (("look", ["sleep", "9999"]), ("look-again", ["false"])):
        container: Obj = {"name": "shell", "image": "busybox:1.36", "command": command}
        api.create(
            {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {"containers": [container]}}, SHOP
        )
    episode.cluster.wait(60)


def selected_again(api: Kubernetes, episode: Episode) -> None:
    """The pods get the label that the selector asks for."""
    selector = api.get("services", "api", SHOP)["spec"]["selector"]
    api.patch("deployments", "api", {"spec": {"template": {"metadata": {"labels": selector}}}}, SHOP)


CASES: dict[str, tuple[type[InjectedProblem], dict[str, Any], Repair]] = {
    "probe removed": (
        LivenessProbeTooAggressive,
        {"service": "aux-service"},
        edited("aux-service", ("remove", f"{CONTAINER}/livenessProbe", None)),
    ),
    "right delays": (
        LivenessProbeTooAggressive,
        {"service": "aux-service"},
        edited(
            "aux-service",
            ("replace", f"{CONTAINER}/livenessProbe/initialDelaySeconds", 40),
            ("replace", f"{CONTAINER}/livenessProbe/failureThreshold", 3),
        ),
    ),
    "startup probe": (
        LivenessProbeTooAggressive,
        {"service": "aux-service"},
        edited(
            "aux-service",
            (
                "add",
                f"{CONTAINER}/startupProbe",
                {"tcpSocket": {"port": 80}, "periodSeconds": 5, "failureThreshold": 12},
            ),
        ),
    ),
    "tolerations on every workload": (TaintNoToleration, {}, tolerate_everywhere),
    "node selector removed": (
        AssignToNonExistentNode,
        {"node": "worker-9"},
        edited("api", ("remove", "/spec/template/spec/nodeSelector", None)),
    ),
    "a new Service": (TargetPort, {}, new_service),
    "debug pods left": (TargetPort, {}, debug_pods_left),
    "more replicas": (ScalePodZero, {}, more_replicas),
    "an autoscaler": (ScalePodZero, {}, autoscaled),
    "another probe": (
        ReadinessProbeMisconfiguration,
        {},
        edited("api", ("replace", f"{CONTAINER}/readinessProbe", {"httpGet": {"path": "/", "port": 8080}})),
    ),
    "liveness by a connection": (
        LivenessProbeMisconfiguration,
        {},
        edited("api", ("replace", f"{CONTAINER}/livenessProbe", {"tcpSocket": {"port": 8080}})),
    ),
    "a renamed config map": (MissingConfigMap, {"config_map": "api-site"}, renamed_settings),
    "lower requests": (
        ResourceRequestTooLarge,
        {"memory_request": "1000Gi"},
        edited("api", ("replace", f"{CONTAINER}/resources", {"requests": {"cpu": "50m", "memory": "64Mi"}})),
    ),
    "labels for the selector": (WrongServiceSelector, {}, selected_again),
    "least privilege": (NetworkPolicyBlock, {}, least_privilege),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.daily_cases(5)
def test_an_honest_repair_passes(name: str) -> None:
    kind, options, repair = CASES[name]
    with broken(kind, **options) as (episode, api):
        repair(api, episode)
        verdict = judged(episode)
        assert verdict.passed, verdict.reasons


class NoLoad(Check):
    """Complains about the pods of the Deployment `load`."""

    name = "no load"

    def complaints(self, problem: Problem) -> list[str]:
        return [pod["metadata"]["name"] for pod in problem.kubernetes.list("pods", SHOP, labels="app=load")]


@pytest.mark.parametrize("finalizers", [[], ["example.com/held"]], ids=["ends", "held for ever"])
def test_grading_starts_when_deleted_pods_are_gone(finalizers: list[str]) -> None:
    """`sleep` as the first process ignores SIGTERM, so its pod goes on for the whole grace period."""
    with broken(ScalePodZero) as (episode, api):
        container: Obj = {"name": "shell", "image": "busybox:1.36", "command": ["sleep", "9999"]}
        template = {
            "metadata": {"labels": {"app": "load"}, "finalizers": finalizers},
            "spec": {"containers": [container]},
        }
        spec = {"selector": {"matchLabels": {"app": "load"}}, "template": template}
        api.create({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "load"}, "spec": spec}, SHOP)
        episode.cluster.wait(30)
        api.delete("deployments", "load", SHOP)
        assert NoLoad().complaints(episode.problem)
        verdict = MitigationOracle(episode.problem, [NoLoad()]).evaluate(None)
        assert verdict.passed == (not finalizers), verdict.reasons


def test_an_equal_stateful_set_in_place_of_a_deployment_passes() -> None:
    with broken(ScalePodZero) as (episode, api):
        before = api.get("deployments", "api", SHOP)
        api.delete("deployments", "api", SHOP)
        spec = {key: before["spec"][key] for key in ("selector", "template")}
        metadata = {key: before["metadata"].get(key) for key in ("name", "labels")}
        api.create(
            {
                "apiVersion": "apps/v1",
                "kind": "StatefulSet",
                "metadata": metadata,
                "spec": {**spec, "replicas": 1, "serviceName": "api"},
            },
            SHOP,
        )
        episode.cluster.wait(20)
        verdict = judged(episode)
        assert verdict.passed, verdict.reasons
