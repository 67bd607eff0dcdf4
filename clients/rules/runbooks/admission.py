"""Pods that are not admitted: webhooks, admission policies, quotas, limit ranges, pod security; and altered pods."""

from __future__ import annotations

import re
from collections.abc import Iterator

from clients.rules import commands
from clients.rules.changes import created_at, edited
from clients.rules.hypotheses import Hypothesis, Repair, Strength
from clients.rules.runbooks import runbook
from clients.rules.system import Obj, System, containers_of, labels_of, matches, name_of, path_of

_WEBHOOKS = ("validatingwebhookconfigurations", "mutatingwebhookconfigurations")


def _refusals(system: System) -> dict[str, set[str]]:
    """Why pods are not created, each with the workloads that miss pods."""
    found: dict[str, set[str]] = {}
    for about, reason, message in system.warnings():
        owner = system.owner_of(str(about.get("name")))
        workload = system.workload(owner) if owner else None
        if reason == "FailedCreate" and workload is not None and system.unready(workload):
            found.setdefault(message, set()).add(owner)
    for workload in system.workloads:
        for condition in (workload.get("status") or {}).get("conditions") or ():
            if condition["type"] == "ReplicaFailure" and condition["status"] == "True":
                found.setdefault(str(condition.get("message")), set()).add(name_of(workload))
    return found


@runbook
def refused(system: System) -> Iterator[Hypothesis]:
    origins: dict[str, tuple[Obj, str, list[Repair], set[str]]] = {}
    for message, owners in _refusals(system).items():
        found = _origin(system, message)
        if found is None:
            continue
        obj, repairs = found
        known = origins.setdefault(path_of(obj), (obj, message, repairs, set()))
        known[3].update(owners)
    for path, (_, message, repairs, owners) in origins.items():
        missing = [one for name in sorted(owners) if (one := system.workload(name)) is not None]
        restarts = [commands.restart(one) for one in missing]
        yield Hypothesis(
            path,
            f"it admits no pod of {', '.join(sorted(owners))}: {message[:250]}",
            Strength.CONFIRMED,
            [*repairs, *restarts],
            frozenset(owners),
            "Misconfiguration",
        )


def _origin(system: System, message: str) -> tuple[Obj, list[Repair]] | None:
    """The object that refuses, and how to have it admit pods again."""
    quota = re.search(r"(?:exceeded|failed) quota: ([\w.-]+)", message)
    if quota:
        obj = system.find("resourcequotas", quota[1])
        return (obj, [commands.delete(obj)]) if obj else None
    if "violates PodSecurity" in message:
        space = system.find("namespaces", system.namespace, "")
        key = ("metadata", "labels", "pod-security.kubernetes.io/enforce")
        return (space, [commands.patch(space, [(key, None)])]) if space else None
    policy = re.search(r"ValidatingAdmissionPolicy '([^']+)'(?: with binding '([^']+)')? denied", message)
    if policy:
        return _policy(system, policy[1], policy[2] or "")
    webhook = re.search(r'webhook "([^"]+)"', message)
    if webhook:
        for resource in _WEBHOOKS:
            for obj in system.all(resource):
                if any(one["name"] == webhook[1] for one in obj.get("webhooks") or ()):
                    return obj, [commands.delete(obj)]
    if re.search(r"(?:maximum|minimum) (?:cpu|memory)|limit to request ratio|\bmax(?:imum)? .* usage per", message):
        ranges = sorted(system.own("limitranges"), key=lambda one: -max(created_at(one), edited(one)))
        return (ranges[0], [commands.delete(ranges[0])]) if ranges else None
    return None


def _policy(system: System, name: str, binding: str) -> tuple[Obj, list[Repair]] | None:
    policy = system.find("validatingadmissionpolicies", name, "")
    bound = system.find("validatingadmissionpolicybindings", binding, "") or next(
        (one for one in system.all("validatingadmissionpolicybindings") if one["spec"].get("policyName") == name), None
    )
    parameters = ((bound or {}).get("spec") or {}).get("paramRef") or {}
    config = system.find(
        "configmaps", str(parameters.get("name")), str(parameters.get("namespace") or system.namespace)
    )
    if config is not None and edited(config, "data"):
        return config, _relaxed(system, config)
    obj = bound or policy
    if obj is None:
        return None
    return obj, [commands.delete(obj)]


def _relaxed(system: System, config: Obj) -> list[Repair]:
    """The parameters of a policy without the entries that name images of the application."""
    images = {str(one.get("image")) for workload in system.workloads for one in containers_of(workload)}
    images |= {f"docker.io/{image}" for image in images}
    changes = []
    for key, value in (config.get("data") or {}).items():
        entries = re.split(r"([,\s]+)", str(value))
        kept = [one for one in entries if not (one.strip(", \n") and any(image.startswith(one) for image in images))]
        if kept != entries:
            changes.append((("data", key), "".join(kept).strip(", \n")))
    return [commands.patch(config, changes)] if changes else []


@runbook
def alters_pods(system: System) -> Iterator[Hypothesis]:
    """Pods differ from their template in what a mutating webhook or a LimitRange sets, and suffer from it."""
    altered = {name_of(one) for one in system.workloads if _altered(system, one)}
    if not altered:
        return
    hooks = [
        obj
        for obj in system.all("mutatingwebhookconfigurations")
        for hook in obj.get("webhooks") or ()
        if any("pods" in (rule.get("resources") or ()) for rule in hook.get("rules") or ())
        and matches(hook.get("namespaceSelector") or {}, _namespace_labels(system))
    ]
    for obj in hooks:
        missing = [one for one in system.workloads if name_of(one) in altered]
        yield Hypothesis(
            path_of(obj),
            f"it changes the resources of the pods of {', '.join(sorted(altered))}",
            Strength.CONFIRMED,
            [commands.delete(obj), *(commands.restart(one) for one in missing)],
            frozenset(altered),
        )


def _namespace_labels(system: System) -> dict[str, str]:
    space = system.find("namespaces", system.namespace, "")
    return labels_of(space) if space else {}


def _altered(system: System, workload: Obj) -> bool:
    """Whether a pod has a limit that its template does not declare."""
    declared = {str(one["name"]): (one.get("resources") or {}).get("limits") or {} for one in containers_of(workload)}
    revisions = system.revisions(workload)
    newest = str(revisions[-1]["metadata"]["name"]) if revisions else ""
    for pod in system.pods_of(name_of(workload)):
        if newest and not any(ref["name"] == newest for ref in pod["metadata"].get("ownerReferences") or ()):
            continue
        for one in pod["spec"]["containers"]:
            limits = (one.get("resources") or {}).get("limits") or {}
            if str(one["name"]) in declared and limits != declared[str(one["name"])]:
                return True
    return False
