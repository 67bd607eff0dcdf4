"""Pods that are not let in."""

from __future__ import annotations

from srearena.conductor.problems.origins import OriginProblem
from srearena.conductor.problems.registry import problem
from srearena.generators.fault.inject_control import ControlFaultInjector


@problem(
    "admission_webhook_outage_hotel_reservation",
    app="hotel_reservation",
    service="recommendation",
    victims=("recommendation", "frontend"),
)
class AdmissionWebhookOutage(OriginProblem):
    family = "admission_webhook_outage"
    injector = ControlFaultInjector
    fault = "admission_webhook_outage"
    fault_type = "Dependency Problem"
    root_kind = "ValidatingWebhookConfiguration"
    origin = "pod-policy"
    origin_namespace = ""
    explanation = (
        "The webhook pod-policy must approve every new pod of the namespace, and the Service behind it does not exist: "
        "no pod is admitted, and that of {service}, once deleted, does not come back."
    )
    remedy = """\
kubectl delete validatingwebhookconfiguration pod-policy
kubectl -n {ns} rollout restart deployment/{service}"""
