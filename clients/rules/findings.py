"""Rules that turn observations into findings: what is wrong, where it originates, and how to repair it.

Every rule is general: about Services, selectors, ports, scheduling, admission, probes and rollouts. A finding with a
cause outranks one with a symptom only; of all findings, only those of the highest rank are reported.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from clients.rules.observations import World


@dataclass(slots=True)
class Finding:
    """A component that is at fault, and how to repair it."""

    component: str
    why: str
    rank: int
    """3: a cause, visible in the object itself; 2: a cause, reported by the cluster; 1: a symptom."""
    repairs: list[str] = field(default_factory=list)
    """kubectl commands."""
    kind: str = "Misconfiguration"


Rule = Callable[[World], Iterator[Finding]]


def scaled_to_zero(world: World) -> Iterator[Finding]:
    for workload in world.workloads.values():
        if workload.desired == 0 and workload.kind != "DaemonSet":
            kind = workload.kind.lower()
            repair = f"kubectl -n {world.namespace} scale {kind} {workload.name} --replicas=1"
            yield Finding(workload.name, "is scaled to nothing", 3, [repair], "Operation Error")


def selector_without_pods(world: World) -> Iterator[Finding]:
    for service in world.services.values():
        if not service.selector or service.name in world.ready_services:
            continue
        if any(service.selector.items() <= workload.labels.items() for workload in world.workloads.values()):
            continue
        near = [
            workload
            for workload in world.workloads.values()
            if any(workload.labels.get(key) == value for key, value in service.selector.items())
        ]
        if len(near) == 1:
            wrong_keys = [key for key, value in service.selector.items() if near[0].labels.get(key) != value]
            operations = [{"op": "remove", "path": f"/spec/selector/{key.replace('/', '~1')}"} for key in wrong_keys]
            repair = (
                f"kubectl -n {world.namespace} patch service {service.name} --type=json -p '{json.dumps(operations)}'"
            )
            yield Finding(near[0].name, "its Service asks for labels that its pods do not have", 3, [repair])


def undeclared_target_port(world: World) -> Iterator[Finding]:
    for service in world.services.values():
        behind = [
            w for w in world.workloads.values() if service.selector and service.selector.items() <= w.labels.items()
        ]
        ports = {port for workload in behind for port in workload.ports}
        for index, entry in enumerate(service.ports):
            target = entry.get("targetPort", entry.get("port"))
            if not ports or not isinstance(target, int) or target in ports:
                continue
            right = entry["port"] if entry.get("port") in ports else min(ports)
            operation = [{"op": "replace", "path": f"/spec/ports/{index}/targetPort", "value": right}]
            if len(service.ports) > 1:
                continue  # with several ports, a declared list is seldom complete
            repair = (
                f"kubectl -n {world.namespace} patch service {service.name} --type=json -p '{json.dumps(operation)}'"
            )
            # Containers may listen on undeclared ports: only together with an alert is it a cause.
            rank = 3 if any(f"'{service.name}'" in line for line in world.alerts) else 1
            yield Finding(
                behind[0].name, f"its Service forwards to port {target}, which it does not declare", rank, [repair]
            )


def workload_without_service(world: World) -> Iterator[Finding]:
    """A workload with ports but without a Service, in a namespace where all others have one, and some fail."""
    covered = {
        workload.name
        for workload in world.workloads.values()
        for service in world.services.values()
        if service.name == workload.name or (service.selector and service.selector.items() <= workload.labels.items())
    }
    uncovered = [w for w in world.workloads.values() if w.name not in covered and w.ports and w.kind == "Deployment"]
    if len(uncovered) == 1 and len(covered) > 2 and is_unhealthy(world):
        workload = uncovered[0]
        port = workload.ports[0]
        yield Finding(
            workload.name,
            "opens a port, and no Service leads there",
            3,
            [
                f"kubectl -n {world.namespace} expose deployment {workload.name} --port={port} --target-port={port}",
                f"kubectl -n {world.namespace} rollout restart deployment",
            ],
            "Operation Error",
        )


def foreign_name_server(world: World) -> Iterator[Finding]:
    for workload in world.workloads.values():
        if workload.dns_policy in ("None", "Default") and workload.kind == "Deployment":
            repair = f"kubectl -n {world.namespace} rollout undo deployment/{workload.name}"
            yield Finding(workload.name, "asks a name server outside the cluster", 3, [repair])


def pods_not_admitted(world: World) -> Iterator[Finding]:
    for _, name, reason, message in world.events:
        owner = world.owner_of(name)
        if reason != "FailedCreate" or not owner or not world.workloads[owner].unready:
            continue
        restart = f"kubectl -n {world.namespace} rollout restart deployment/{owner}"
        quota = re.search(r"(?:failed|exceeded) quota: ([\w.-]+)", message)
        if quota:
            delete = f"kubectl -n {world.namespace} delete resourcequota {quota.group(1)}"
            yield Finding(owner, f"quota {quota.group(1)} admits no pod of it", 2, [delete, restart])
        elif "violates PodSecurity" in message:
            unlabel = f"kubectl label namespace {world.namespace} pod-security.kubernetes.io/enforce-"
            yield Finding(owner, "pod security admits no pod of it", 2, [unlabel, restart])


def pods_not_scheduled(world: World) -> Iterator[Finding]:
    for _, name, reason, message in world.events:
        owner = world.owner_of(name)
        if reason != "FailedScheduling" or not owner or not world.workloads[owner].unready:
            continue
        repairs = []
        for key, value in re.findall(r"untolerated taint \{([^:}]+): ?([^}]*)\}", message):
            if not key.startswith(("node-role.kubernetes.io", "node.kubernetes.io")):
                repairs.append(
                    f"kubectl taint nodes --all {key}={value}:NoSchedule-"
                    if value
                    else f"kubectl taint nodes --all {key}-"
                )
        if not repairs:
            repairs = [f"kubectl -n {world.namespace} rollout undo deployment/{owner}"]
            if "anti-affinity" in message or world.workloads[owner].desired > 1:
                repairs.append(f"kubectl -n {world.namespace} scale deployment {owner} --replicas=1")
        yield Finding(owner, message[:120], 2, repairs)


def denying_policy(world: World) -> Iterator[Finding]:
    for name, selector, ingress, egress in world.policies:
        labels = _match_labels(selector)
        hit = [w.name for w in world.workloads.values() if labels and labels.items() <= w.labels.items()]
        if hit and not ingress and not egress:
            repair = f"kubectl -n {world.namespace} delete networkpolicy {name}"
            yield Finding(hit[0], f"network policy {name} lets nothing through", 3, [repair])


def _match_labels(selector: str) -> dict[str, str]:
    try:
        return dict(json.loads(selector).get("matchLabels") or {})
    except ValueError:
        return {}


def not_ready(world: World) -> Iterator[Finding]:
    """A workload that is not ready: undo the last change first."""
    for workload in world.workloads.values():
        if not workload.unready or workload.kind != "Deployment":
            continue
        changed = workload.revision > 1
        repair = "undo" if changed else "restart"
        why = f"{workload.available} of {workload.desired} pods are available"
        command = f"kubectl -n {world.namespace} rollout {repair} deployment/{workload.name}"
        yield Finding(workload.name, why, 2 if changed else 1, [command])


_ALERTS_OF_ORIGINS = ("ServiceEndpointDown", "DeploymentNotReady", "PodStatusError", "KubePodNotReady", "FailedPods")


def alerted(world: World) -> Iterator[Finding]:
    """Alerts about a workload itself point to the origin; those about its calls may concern a dependency."""
    for line in world.alerts:
        for label in ("deployment", "service", "pod", "service_name"):
            match = re.search(rf"'{label}': '([^']+)'", line)
            owner = world.owner_of(match.group(1)) if match else ""
            if not owner:
                continue
            origin = line.split()[1].startswith(_ALERTS_OF_ORIGINS)
            changed = world.workloads[owner].revision > 1
            undo = f"kubectl -n {world.namespace} rollout undo deployment/{owner}"
            yield Finding(owner, line[:120], 2 if origin else 1, [undo] if changed else [])
            break


RULES: tuple[Rule, ...] = (
    scaled_to_zero,
    selector_without_pods,
    undeclared_target_port,
    workload_without_service,
    foreign_name_server,
    denying_policy,
    pods_not_admitted,
    pods_not_scheduled,
    not_ready,
    alerted,
)


def is_unhealthy(world: World) -> bool:
    """Whether the system is visibly unhealthy."""
    return (
        any(workload.unready for workload in world.workloads.values())
        or any(service.selector and service.name not in world.ready_services for service in world.services.values())
        or bool(world.alerts)
    )


def conclude(world: World) -> list[Finding]:
    """The findings of the highest rank, one per component."""
    findings = [finding for rule in RULES for finding in rule(world)]
    highest = max((finding.rank for finding in findings), default=0)
    by_component: dict[str, Finding] = {}
    for finding in findings:
        if finding.rank == highest:
            by_component.setdefault(finding.component, finding)
    return list(by_component.values())
