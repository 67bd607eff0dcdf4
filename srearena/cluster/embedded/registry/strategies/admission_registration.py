"""Webhook configurations and admission policies."""

from __future__ import annotations

from srearena.cluster.embedded.objects import Obj
from srearena.cluster.embedded.registry.strategies.parts import fill, items, part
from srearena.cluster.embedded.registry.strategy import Strategy

GROUP = "admissionregistration.k8s.io"
_WEBHOOK = {"failurePolicy": "Fail", "matchPolicy": "Equivalent", "timeoutSeconds": 10}
_MUTATING = {"reinvocationPolicy": "Never"}


def _default_webhooks(obj: Obj) -> None:
    for webhook in items(obj, "webhooks"):
        fill(webhook, _WEBHOOK)
        part(webhook, "namespaceSelector")
        part(webhook, "objectSelector")
        service = part(webhook, "clientConfig").get("service")
        if service is not None:
            fill(service, {"port": 443})
        for rule in items(webhook, "rules"):
            fill(rule, {"scope": "*"})


def _default_mutating_webhooks(obj: Obj) -> None:
    _default_webhooks(obj)
    for webhook in items(obj, "webhooks"):
        fill(webhook, _MUTATING)


def _default_match_resources(constraints: Obj | None) -> None:
    if constraints is None:
        return
    fill(constraints, {"matchPolicy": "Equivalent"})
    part(constraints, "namespaceSelector")
    part(constraints, "objectSelector")
    for key in ("resourceRules", "excludeResourceRules"):
        for rule in items(constraints, key):
            fill(rule, {"scope": "*"})


def _default_policy(obj: Obj) -> None:
    spec = part(obj, "spec")
    fill(spec, {"failurePolicy": "Fail"})
    _default_match_resources(spec.get("matchConstraints"))
    part(obj, "status")


def _default_policy_binding(obj: Obj) -> None:
    _default_match_resources(part(obj, "spec").get("matchResources"))


STRATEGIES = {
    f"validatingwebhookconfigurations.{GROUP}": Strategy(default=_default_webhooks),
    f"mutatingwebhookconfigurations.{GROUP}": Strategy(default=_default_mutating_webhooks),
    f"validatingadmissionpolicies.{GROUP}": Strategy(default=_default_policy),
    f"validatingadmissionpolicybindings.{GROUP}": Strategy(default=_default_policy_binding),
}
