"""Workloads that fail during startup or during a rollout.

Both need a program that starts slowly, which the applications do not have, so the problem adds one, healthy at first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import ClassVar

from srearena.conductor.oracles.checks import Check
from srearena.conductor.problems.base import Problem
from srearena.conductor.problems.injected import CONTAINER, POD, RESTORE
from srearena.conductor.problems.origins import OriginProblem
from srearena.conductor.problems.registry import problem
from srearena.conductor.problems.variation import Choice
from srearena.generators.fault.actors import deployment, service
from srearena.service.kubernetes import Obj
from srearena.service.readiness import missing_replicas

_PORT = 80
_STEP = 5.0


def _web_server(starts_in: int) -> Obj:
    """A container that starts to serve after a delay."""
    script = f"sleep {starts_in}; exec nginx -g 'daemon off;'"
    return {
        "name": "server",
        "image": "nginx:1.27",
        "command": ["sh", "-c", script],
        "ports": [{"containerPort": _PORT}],
        "readinessProbe": {"tcpSocket": {"port": _PORT}, "periodSeconds": 5},
        "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}},
    }


@problem("liveness_probe_too_aggressive_hotel_reservation", app="hotel_reservation", service="aux-service")
@problem("liveness_probe_too_aggressive_social_network", app="social_network", service="aux-service")
@problem("liveness_probe_too_aggressive_astronomy_shop", app="astronomy_shop", service="aux-service")
class LivenessProbeTooAggressive(OriginProblem):
    varies: ClassVar[Mapping[str, Choice]] = {
        "service": ("aux-service", "export-service", "feed-service", "notify-service")
    }
    family = "liveness_probe_too_aggressive"
    difficulty = "easy"
    fault = "liveness_probe_too_aggressive"
    explanation = "{service} takes fifteen seconds to start, and its liveness probe kills it after the first."
    remedy = RESTORE
    restores = (f"{CONTAINER}/livenessProbe", f"{POD}/terminationGracePeriodSeconds")

    def declared(self, service: str) -> Obj:
        container = _web_server(15)
        container["livenessProbe"] = {
            "tcpSocket": {"port": _PORT},
            "initialDelaySeconds": 30,
            "periodSeconds": 10,
            "failureThreshold": 3,
        }
        return deployment(service, self.namespace, {"containers": [container]})

    def set_up(self) -> None:
        name = self.services[0]
        for obj in (self.declared(name), service(name, self.namespace, _PORT)):
            self.kubernetes.apply(obj)
        self.cluster.wait(30)


class RollsOver(Check):
    """A rollout by the harness completes, and at least one pod is available at all times.

    Why it cannot be gamed: the rollout is executed, not computed from the strategy; any strategy that keeps pods
    available passes, and pods that never start do not.
    """

    name = "rollout"
    disruptive = True

    def __init__(self, deployment: str, timeout: float = 240.0) -> None:
        self._deployment = deployment
        self._timeout = timeout

    def complaints(self, problem: Problem) -> list[str]:
        api, namespace = problem.kubernetes, problem.namespace
        api.restart("deployments", self._deployment, namespace)
        waited = 0.0
        while waited < self._timeout:
            problem.cluster.wait(_STEP)
            waited += _STEP
            now = api.get("deployments", self._deployment, namespace)
            if not (now.get("status") or {}).get("availableReplicas"):
                return [f"during a rollout no pod of {self._deployment} was available"]
            if missing_replicas(now) is None:
                return []
        return [f"a rollout of {self._deployment} does not complete"]


@problem("rolling_update_misconfigured_hotel_reservation", app="hotel_reservation", service="custom-service")
@problem("rolling_update_misconfigured_social_network", app="social_network", service="custom-service")
class RollingUpdateMisconfigured(OriginProblem):
    varies: ClassVar[Mapping[str, Choice]] = {"service": ("custom-service", "report-service", "webhook-relay")}
    family = "rolling_update_misconfigured"
    fault = "rolling_update_misconfigured"
    explanation = (
        "The strategy of {service} lets a rollout take all pods away at once, and its new pods wait for ever in an "
        "init container: nobody serves."
    )
    remedy = RESTORE
    restores = (f"{POD}/initContainers", "/spec/strategy")

    def declared(self, service: str) -> Obj:
        return deployment(service, self.namespace, {"containers": [_web_server(10)]}, replicas=3)

    def set_up(self) -> None:
        name = self.services[0]
        for obj in (self.declared(name), service(name, self.namespace, _PORT)):
            self.kubernetes.apply(obj)
        self.cluster.wait(30)

    def more_checks(self) -> Iterable[Check]:
        return [RollsOver(self.services[0])]
