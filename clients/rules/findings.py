"""From what was seen to what is wrong, where it comes from, and what an engineer would do about it.

Every rule is general: about Services, selectors, ports, scheduling, admission, probes and rollouts. A finding that
names a cause outranks one that only names a symptom; of causes, only those of the highest rank are reported.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from clients.rules.observations import World


@dataclass(slots=True)
class Finding:
    component: str
    why: str
    rank: int
    """3: a cause, seen in the object itself; 2: a cause, told by the cluster; 1: a symptom."""
    repairs: list[str] = field(default_factory=list)
    """kubectl commands."""
    kind: str = "Misconfiguration"


Rule = Callable[[World], Iterator[Finding]]


def scaled_to_nothing(world: World) -> Iterator[Finding]:
    for workload in world.workloads.values():
        if workload.wanted == 0 and workload.kind != "DaemonSet":
            kind = workload.kind.lower()
            repair = f"kubectl -n {world.namespace} scale {kind} {workload.name} --replicas=1"
            yield Finding(workload.name, "is scaled to nothing", 3, [repair], "Operation Error")


def selector_without_pods(world: World) -> Iterator[Finding]:
    for service in world.services.values():
        if not service.selector or service.name in world.served:
            continue
        if any(service.selector.items() <= workload.labels.items() for workload in world.workloads.values()):
            continue
        near = [
            workload
            for workload in world.workloads.values()
            if any(workload.labels.get(key) == value for key, value in service.selector.items())
        ]
        if len(near) == 1:
            strange = [key for key, value in service.selector.items() if near[0].labels.get(key) != value]
            operations = [{"op": "remove", "path": f"/spec/selector/{key.replace('/', '~1')}"} for key in strange]
            repair = (
                f"kubectl -n {world.namespace} patch service {service.name} --type=json -p '{json.dumps(operations)}'"
            )
            yield Finding(near[0].name, "its Service asks for labels that its pods do not have", 3, [repair])


def port_nobody_listens_on(world: World) -> Iterator[Finding]:
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
            # What containers declare is not what they open: only with somebody else's word is it a cause.
            rank = 3 if any(f"'{service.name}'" in line for line in world.alerts) else 1
            yield Finding(
                behind[0].name, f"its Service forwards to port {target}, which it does not declare", rank, [repair]
            )


def workload_without_service(world: World) -> Iterator[Finding]:
    """A workload with ports that no Service leads to, in a namespace where its peers all have one, and some fail."""
    covered = {
        workload.name
        for workload in world.workloads.values()
        for service in world.services.values()
        if service.name == workload.name or (service.selector and service.selector.items() <= workload.labels.items())
    }
    bare = [w for w in world.workloads.values() if w.name not in covered and w.ports and w.kind == "Deployment"]
    if len(bare) == 1 and len(covered) > 2 and trouble(world):
        workload = bare[0]
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
    for _, name, reason, said in world.events:
        owner = world.owner_of(name)
        if reason != "FailedCreate" or not owner or not world.workloads[owner].unready:
            continue
        restart = f"kubectl -n {world.namespace} rollout restart deployment/{owner}"
        quota = re.search(r"(?:failed|exceeded) quota: ([\w.-]+)", said)
        if quota:
            delete = f"kubectl -n {world.namespace} delete resourcequota {quota.group(1)}"
            yield Finding(owner, f"quota {quota.group(1)} admits no pod of it", 2, [delete, restart])
        elif "violates PodSecurity" in said:
            unlabel = f"kubectl label namespace {world.namespace} pod-security.kubernetes.io/enforce-"
            yield Finding(owner, "pod security admits no pod of it", 2, [unlabel, restart])


def pods_not_scheduled(world: World) -> Iterator[Finding]:
    for _, name, reason, said in world.events:
        owner = world.owner_of(name)
        if reason != "FailedScheduling" or not owner or not world.workloads[owner].unready:
            continue
        repairs = []
        for key, value in re.findall(r"untolerated taint \{([^:}]+): ?([^}]*)\}", said):
            if not key.startswith(("node-role.kubernetes.io", "node.kubernetes.io")):
                repairs.append(
                    f"kubectl taint nodes --all {key}={value}:NoSchedule-"
                    if value
                    else f"kubectl taint nodes --all {key}-"
                )
        if not repairs:
            repairs = [f"kubectl -n {world.namespace} rollout undo deployment/{owner}"]
            if "anti-affinity" in said or world.workloads[owner].wanted > 1:
                repairs.append(f"kubectl -n {world.namespace} scale deployment {owner} --replicas=1")
        yield Finding(owner, said[:120], 2, repairs)


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


def not_up(world: World) -> Iterator[Finding]:
    """A workload that is not ready: the last change is the first suspect."""
    for workload in world.workloads.values():
        if not workload.unready or workload.kind != "Deployment":
            continue
        changed = workload.revision > 1
        repair = "undo" if changed else "restart"
        why = f"{workload.available} of {workload.wanted} pods are available"
        command = f"kubectl -n {world.namespace} rollout {repair} deployment/{workload.name}"
        yield Finding(workload.name, why, 2 if changed else 1, [command])


_ALERTS_OF_ORIGINS = ("ServiceEndpointDown", "DeploymentNotReady", "PodStatusError", "KubePodNotReady", "FailedPods")


def alerted(world: World) -> Iterator[Finding]:
    """Alerts about a workload itself point at the origin; those about its calls may be about what it calls."""
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
    scaled_to_nothing,
    selector_without_pods,
    port_nobody_listens_on,
    workload_without_service,
    foreign_name_server,
    denying_policy,
    pods_not_admitted,
    pods_not_scheduled,
    not_up,
    alerted,
)


def trouble(world: World) -> bool:
    """Whether anything is visibly wrong."""
    return (
        any(workload.unready for workload in world.workloads.values())
        or any(service.selector and service.name not in world.served for service in world.services.values())
        or bool(world.alerts)
    )


def conclude(world: World) -> list[Finding]:
    """The findings of the highest rank there is, one per component."""
    found = [finding for rule in RULES for finding in rule(world)]
    highest = max((finding.rank for finding in found), default=0)
    chosen: dict[str, Finding] = {}
    for finding in found:
        if finding.rank == highest:
            chosen.setdefault(finding.component, finding)
    return list(chosen.values())
