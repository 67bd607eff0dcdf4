"""Services that are missing or have wrong selectors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from srearena.conductor.oracles.checks.connections import ConnectionSuccess
from srearena.conductor.oracles.mitigation import MitigationOracle
from srearena.conductor.problems.injected import InjectedProblem
from srearena.conductor.problems.registry import problem
from srearena.conductor.problems.targets import caller, components, named_by_dns, stores
from srearena.conductor.problems.variation import Choice

_LABEL = "current_service_name"


@problem("missing_service_astronomy_shop", app="astronomy_shop", service="ad", client="frontend")
@problem("missing_service_hotel_reservation", app="hotel_reservation", service="mongodb-rate", client="rate")
@problem("missing_service_social_network", app="social_network", service="user-service", client="compose-post-service")
class MissingService(InjectedProblem):
    varies: ClassVar[Mapping[str, Choice]] = {
        "service": lambda arguments: [*stores(arguments), *named_by_dns(arguments)],
        "client": caller,
    }
    family = "missing_service"
    fault = "missing_service"
    fault_type = "Operation Error"
    root_kind = "Service"
    explanation = "The Service {service} was deleted, so its name resolves to nothing."
    remedy = """\
port=$(kubectl -n {ns} get deployment {service} -o jsonpath='{..containers[0].ports[0].containerPort}')
kubectl -n {ns} expose deployment {service} --port="$port" --target-port="$port"
kubectl -n {ns} rollout restart deployment/{client}"""


@problem("wrong_service_selector_astronomy_shop", app="astronomy_shop", service="frontend")
@problem("wrong_service_selector_hotel_reservation", app="hotel_reservation", service="frontend")
@problem("wrong_service_selector_social_network", app="social_network", service="user-service")
class WrongServiceSelector(InjectedProblem):
    varies: ClassVar[Mapping[str, Choice]] = {"service": named_by_dns, "label": (_LABEL, "track", "app_version")}
    family = "wrong_service_selector"
    difficulty = "easy"
    fault = "wrong_service_selector"
    root_kind = "Service"
    explanation = "The Service {service} asks for a label that no pod has, so it has no endpoints."
    remedy = (
        "kubectl -n {ns} patch service {service} --type=json "
        """-p '[{"op": "remove", "path": "/spec/selector/{label}"}]'"""
    )

    def __init__(self, app: str, service: str, label: str = _LABEL) -> None:
        super().__init__(app, service, label=label)


@problem("service_wrong_pod_selection_hotel_reservation", app="hotel_reservation", service="frontend", other="search")
class ServiceWrongPodSelection(InjectedProblem):
    varies: ClassVar[Mapping[str, Choice]] = {"other": components}
    family = "service_wrong_pod_selection"
    fault = "service_wrong_pod_selection"
    root_kind = "Service"
    also_changed = ("Deployment/{other}",)  # its pods got the label
    explanation = (
        "The Service {service} selects by a label that pods of {other} carry as well: part of the connections goes to "
        "pods that do not listen there."
    )
    remedy = """\
labels=$(kubectl -n {ns} get deployment {service} -o jsonpath='{.spec.selector.matchLabels}')
kubectl -n {ns} patch service {service} --type=json \
-p '[{"op": "replace", "path": "/spec/selector", "value": '"$labels"'}]'"""

    def __init__(self, app: str, service: str, **options: Any) -> None:
        super().__init__(app, service, **options)
        self.mitigation_oracle = MitigationOracle(self, also=[ConnectionSuccess(service)])
