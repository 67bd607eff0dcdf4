"""A Service forwards to a port on which nothing listens."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from srearena.conductor.problems.injected import InjectedProblem
from srearena.conductor.problems.registry import problem
from srearena.conductor.problems.targets import named_by_dns
from srearena.conductor.problems.variation import Choice


@problem(
    "k8s_target_port-misconfig", aliases=("k8s_target_port-misconfig-1",), app="social_network", service="user-service"
)
@problem("k8s_target_port-misconfig-2", app="social_network", service="text-service")
@problem("k8s_target_port-misconfig-3", app="social_network", service="post-storage-service")
class TargetPort(InjectedProblem):
    varies: ClassVar[Mapping[str, Choice]] = {"port": (9999, 9191, 8999, 19090)}
    varies_further: ClassVar[Mapping[str, Choice]] = {"service": named_by_dns}
    family = "k8s_target_port-misconfig"
    difficulty = "easy"
    fault = "misconfig_k8s"
    root_kind = "Service"
    explanation = "The Service {service} forwards to a port on which no container of {service} listens."

    def _remedy(self) -> str:
        """Set the target port of the application's manifests again."""
        ports = {
            manifest.name: manifest.obj["spec"]["ports"][0].get("targetPort", manifest.obj["spec"]["ports"][0]["port"])
            for manifest in self.app.manifests
            if manifest.kind == "Service"
        }
        patch = '[{"op": "replace", "path": "/spec/ports/0/targetPort", "value": PORT}]'
        command = f"kubectl -n {self.namespace} patch service SERVICE --type=json -p '{patch}'"
        return "\n".join(
            command.replace("SERVICE", name).replace("PORT", str(ports.get(name))) for name in self.services
        )
