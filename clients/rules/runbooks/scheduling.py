"""Pods that no node takes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from clients.rules import commands
from clients.rules.changes import suspicious_revision
from clients.rules.hypotheses import Hypothesis, Repair, Strength
from clients.rules.runbooks import runbook
from clients.rules.system import Obj, System, containers_of, name_of, path_of, template_of

_BASE = ("spec", "template", "spec")


def _unscheduled(system: System) -> Iterator[tuple[Obj, str]]:
    """Workloads with pending pods, and the scheduler's latest message."""
    for workload in system.workloads:
        for pod in system.pods_of(name_of(workload)):
            for condition in (pod.get("status") or {}).get("conditions") or ():
                if condition["type"] == "PodScheduled" and condition["status"] == "False":
                    yield workload, str(condition.get("message") or "")
                    break
            else:
                continue
            break


@runbook
def no_node_fits(system: System) -> Iterator[Hypothesis]:
    preempted = any(event.get("reason") == "Preempted" for event in system.own("events"))
    for workload, message in _unscheduled(system):
        if preempted and "Insufficient" in message:
            continue  # a matter of priorities
        if workload["kind"] == "Deployment" and suspicious_revision(system, workload) is not None:
            continue  # taken back by another runbook
        claim = re.search(r'persistentvolumeclaim "([^"]+)" not found', message)
        if "unbound immediate PersistentVolumeClaims" in message or claim:
            continue  # a matter of storage
        if re.search(r"node\.kubernetes\.io/(not-ready|unreachable|disk-pressure|memory-pressure)", message):
            continue  # a matter of the nodes
        taint = re.findall(r"untolerated taint \{([^}: ]+)(?:: ?([^}]*))?\}", message)
        foreign = [key for key, _ in taint if not key.startswith(("node-role.kubernetes.io", "node.kubernetes.io"))]
        if foreign and "affinity" not in message and "Insufficient" not in message:
            yield from _tainted(system, workload, foreign)
            continue
        changes = list(_loosened(workload, message))
        repairs: list[Repair] = [commands.patch(workload, changes)] if changes else []
        nodes = len([node for node in system.all("nodes") if not _control_plane(node)])
        if "anti-affinity" in message and system.desired(workload) > nodes:
            repairs = [commands.scale(workload, nodes)]
        elif "anti-affinity" in message and not changes:
            strategy = workload["spec"].get("strategy") or {}
            if strategy.get("type") != "Recreate":
                repairs = [commands.patch(workload, [((*_BASE, "affinity", "podAntiAffinity"), None)])]
        if workload["metadata"].get("ownerReferences"):
            continue  # an operator decides what it asks for
        yield Hypothesis(path_of(workload), f"no node takes its pods: {message[:200]}", Strength.CONFIRMED, repairs)


def _control_plane(node: Obj) -> bool:
    return any(key.startswith("node-role.kubernetes.io/control-plane") for key in node["metadata"].get("labels") or {})


def _tainted(system: System, workload: Obj, keys: list[str]) -> Iterator[Hypothesis]:
    """The taint belongs to the nodes; one that all workers have keeps everything new away."""
    repairs = []
    named = []
    for node in system.all("nodes"):
        taints = [one for one in node["spec"].get("taints") or () if one["key"] in keys]
        if taints:
            named.append(node)
            kept = [one for one in node["spec"]["taints"] if one not in taints]
            repairs.append(commands.patch(node, [(("spec", "taints"), kept or None)]))
    for node in named:
        yield Hypothesis(
            path_of(node),
            f"its taint {keys[0]} keeps pods of {name_of(workload)} away",
            Strength.CONFIRMED,
            repairs,
            frozenset({name_of(workload)}),
        )


def _loosened(workload: Obj, message: str) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    """The demands of a pod template that no node meets, removed or lowered."""
    spec = template_of(workload)["spec"]
    if "node affinity/selector" in message or "node selector" in message:
        if spec.get("nodeSelector"):
            yield (*_BASE, "nodeSelector"), None
        if (spec.get("affinity") or {}).get("nodeAffinity"):
            yield (*_BASE, "affinity", "nodeAffinity"), None
    if "pod affinity rules" in message and (spec.get("affinity") or {}).get("podAffinity"):
        yield (*_BASE, "affinity", "podAffinity"), None
    for resource in re.findall(r"Insufficient ([\w./-]+?)[.,;]?(?:\s|$)", message):
        for index, one in enumerate(containers_of(workload)):
            requests = (one.get("resources") or {}).get("requests") or {}
            if resource in requests:
                yield (*_BASE, "containers", index, "resources", "requests", resource), None
