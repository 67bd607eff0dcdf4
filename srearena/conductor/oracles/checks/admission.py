"""Nothing that the agent added sits in the admission path of the pods, workloads and Services under test.

Such a webhook or policy could rewrite the grader's probes and the pods that replace faulty ones, and it would stay
behind after the repair. What was there before the agent is not judged: webhooks of the platform, and those of the
fault. They may be removed, narrowed, given other timeouts or another authority; they may not call another server.

Why it cannot be gamed: the configurations are read from the API, where admission cannot hide them (webhooks are not
called for reads, nor for webhook configurations), and compared with those from before the agent's start.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from srearena.conductor.oracles.checks.base import Check
from srearena.service.kubernetes import Kubernetes, Obj

if TYPE_CHECKING:
    from srearena.conductor.problems.base import Problem

_GROUP = "admissionregistration.k8s.io"
_WEBHOOKS = (f"mutatingwebhookconfigurations.{_GROUP}", f"validatingwebhookconfigurations.{_GROUP}")
_POLICIES = ("MutatingAdmissionPolicy", "ValidatingAdmissionPolicy")
_JUDGED_GROUPS = frozenset({"", "*", "apps", "batch", "discovery.k8s.io", "networking.k8s.io"})
"""The API groups of pods, workloads, Services, endpoints and network policies."""
Key = tuple[str, str, str]
"""Resource, configuration, webhook."""


class Admission(Check):
    """No webhook and no admission policy is new or calls another server."""

    name = "admission"

    def record_baseline(self, problem: Problem) -> list[str]:
        """The names of the admission policies."""
        return sorted(_policies(problem.kubernetes))

    def complaints(self, problem: Problem) -> list[str]:
        if problem.baseline is None:
            return []
        known: dict[Key, list[Obj]] = {}
        for baseline in (problem.baseline, problem.handed_over):
            for resource in _WEBHOOKS:
                for configuration in baseline.of(resource) if baseline is not None else ():
                    for key, hook in _judged(resource, configuration):
                        known.setdefault(key, []).append(hook)
        found = []
        for resource in _WEBHOOKS:
            for configuration in problem.kubernetes.list(resource):
                for key, hook in _judged(resource, configuration):
                    name = f"the webhook {key[2]} of {configuration['kind']} {key[1]}"
                    if key not in known:
                        found.append(f"{name} intercepts {_described(hook)}, and was not there before")
                    elif _server(hook) not in [_server(before) for before in known[key]]:
                        found.append(f"{name} calls another server than before: {_server(hook)}")
        policies = _policies(problem.kubernetes) - set(self.baseline_value(problem) or ())
        return [*found, *(f"{name} intercepts requests, and was not there before" for name in sorted(policies))]


def _judged(resource: str, configuration: Obj) -> list[tuple[Key, Obj]]:
    """The webhooks of a configuration that see what is judged."""
    name = configuration["metadata"]["name"]
    return [
        ((resource, name, str(hook.get("name"))), hook)
        for hook in configuration.get("webhooks") or ()
        if any(_JUDGED_GROUPS & set(rule.get("apiGroups") or ()) for rule in hook.get("rules") or ())
    ]


def _described(hook: Obj) -> str:
    resources = [str(name) for rule in hook.get("rules") or () for name in rule.get("resources") or ()]
    return ", ".join(dict.fromkeys(resources))


def _server(hook: Obj) -> str:
    client: dict[str, Any] = hook.get("clientConfig") or {}
    service = client.get("service")
    if not service:
        return str(client.get("url"))
    return f"{service.get('name')}.{service.get('namespace')}:{service.get('port') or 443}"


def _policies(api: Kubernetes) -> set[str]:
    """The admission policies of every version that the cluster serves."""
    resources = [resource for resource in api.resources() if resource.group == _GROUP and resource.kind in _POLICIES]
    return {f"{resource.kind} {obj['metadata']['name']}" for resource in resources for obj in api.list(resource.name)}
