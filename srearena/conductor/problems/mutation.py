"""Faults of mutating webhooks."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

from srearena.conductor.problems.admission import DEFAULTS, POLICY, WEBHOOK_NAMESPACE, WebhookProblem, reviewing
from srearena.conductor.problems.registry import problem
from srearena.service.kubernetes import Obj

_MEMORY = "DEFAULT_MEMORY_LIMIT"


@problem(
    "mutating_webhook_resource_limits_social_network",
    app="social_network",
    service="nginx-thrift",
    victims=("nginx-thrift",),
)
class MutatingWebhookLimits(WebhookProblem):
    """Adds a webhook that sets default memory limits, and other webhooks for pods of other namespaces.

    The webhook's configuration and its server have the same name, so an answer may mean either. Only the embedded
    cluster has the server's image.
    """

    family = "mutating_webhook_resource_limits"
    difficulty = "hard"
    fault = "webhook_setting"
    root_kind = "Deployment"
    origin = POLICY
    origin_namespace = WEBHOOK_NAMESPACE
    misbehaving = (f"MutatingWebhookConfiguration/{POLICY}",)
    runs_on = ("embedded",)
    server: ClassVar[Obj] = {
        "image": "registry.example.com/platform/pod-defaults:1.4.0",
        "env": [{"name": _MEMORY, "value": "512Mi"}],
    }
    explanation = (
        f"The webhook {POLICY} gives containers that name no limit of memory 16Mi instead of 512Mi: the next pod of "
        "{service} is killed as soon as it starts, and nothing in its Deployment says why."
    )
    remedy = f"""\\
kubectl delete mutatingwebhookconfiguration {POLICY}
kubectl -n {{ns}} rollout restart deployment/{{service}}"""

    def __init__(self, app: str, service: str, **options: Any) -> None:
        super().__init__(
            app, service, webhook=POLICY, place=WEBHOOK_NAMESPACE, variable=_MEMORY, value="16Mi", **options
        )

    def configurations(self, authority: str) -> Iterable[Obj]:
        yield reviewing(POLICY, self.namespace, authority, "Mutating", 5, "Ignore")
        for name in DEFAULTS:
            yield reviewing(name, "default", authority, "Mutating", 5, "Ignore")
