"""The agent's queries of a namespace, one kubectl command each, and parsers of their output.

The output of actions is limited, so each command prints only the fields that are used, separated by bars.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

WORKLOADS = (
    "kubectl -n {ns} get deployments,statefulsets,daemonsets -o jsonpath='"
    "{range .items[*]}{.kind}|{.metadata.name}|{.spec.replicas}|{.status.availableReplicas}|{.status.updatedReplicas}|"
    "{.spec.template.metadata.labels}|{.spec.template.spec.containers[*].ports[*].containerPort}|"
    "{.spec.template.spec.dnsPolicy}|{.metadata.generation}|"
    '{.metadata.annotations.deployment\\.kubernetes\\.io/revision}{"\\n"}{end}\''
)
SERVICES = (
    "kubectl -n {ns} get services -o jsonpath='{range .items[*]}{.metadata.name}|{.spec.selector}|"
    '{.spec.ports}{"\\n"}{end}\''
)
ENDPOINTS = (
    "kubectl -n {ns} get endpointslices -o jsonpath='{range .items[*]}"
    '{.metadata.labels.kubernetes\\.io/service-name}|{.endpoints[*].conditions.ready}{"\\n"}{end}\''
)
PODS = (
    "kubectl -n {ns} get pods -o jsonpath='{range .items[*]}{.metadata.name}|{.metadata.ownerReferences[0].name}|"
    "{.status.phase}|{.status.containerStatuses[*].ready}|{.status.containerStatuses[*].state.waiting.reason}|"
    '{.status.containerStatuses[*].restartCount}{"\\n"}{end}\''
)
EVENTS = (
    "kubectl -n {ns} get events --field-selector type=Warning -o jsonpath='{range .items[*]}"
    '{.involvedObject.kind}|{.involvedObject.name}|{.reason}|{.message}{"\\n"}{end}\' | tail -n 60'
)
QUOTAS = "kubectl -n {ns} get resourcequotas -o jsonpath='{.items[*].metadata.name}'"
POLICIES = (
    "kubectl -n {ns} get networkpolicies -o jsonpath='{range .items[*]}{.metadata.name}|{.spec.podSelector}|"
    '{.spec.ingress}|{.spec.egress}{"\\n"}{end}\''
)


@dataclass(slots=True)
class Workload:
    """A Deployment, StatefulSet or DaemonSet."""

    kind: str
    name: str
    desired: int
    available: int
    updated: int
    labels: Mapping[str, str]
    ports: tuple[int, ...]
    dns_policy: str
    revision: int

    @property
    def unready(self) -> bool:
        return self.available < self.desired or self.updated < self.desired


@dataclass(slots=True)
class Service:
    """A Service."""

    name: str
    selector: Mapping[str, str]
    ports: list[dict[str, Any]]


@dataclass(slots=True)
class Pod:
    """A Pod."""

    name: str
    owner: str
    phase: str
    ready: bool
    waiting: str
    restarts: int


@dataclass(slots=True)
class World:
    """All observations of a namespace."""

    namespace: str
    workloads: dict[str, Workload] = field(default_factory=dict)
    services: dict[str, Service] = field(default_factory=dict)
    ready_services: set[str] = field(default_factory=set)
    """Services with at least one ready endpoint."""
    pods: list[Pod] = field(default_factory=list)
    events: list[tuple[str, str, str, str]] = field(default_factory=list)
    alerts: list[str] = field(default_factory=list)
    quotas: list[str] = field(default_factory=list)
    policies: list[tuple[str, str, str, str]] = field(default_factory=list)

    def owner_of(self, pod: str) -> str:
        """The workload of a pod or ReplicaSet, by name prefix."""
        return next(
            (
                name
                for name in sorted(self.workloads, key=len, reverse=True)
                if pod == name or pod.startswith(f"{name}-")
            ),
            "",
        )


def _rows(text: str, width: int) -> list[list[str]]:
    rows = [line.split("|", width - 1) for line in text.splitlines()]
    return [row for row in rows if len(row) == width]


def _number(text: str) -> int:
    return int(text) if text.strip().isdigit() else 0


def _mapping(text: str) -> dict[str, str]:
    try:
        value = json.loads(text)
    except ValueError:
        return {}
    return {str(key): str(item) for key, item in value.items()} if isinstance(value, dict) else {}


def read_workloads(world: World, text: str) -> None:
    world.workloads = {}
    for kind, name, desired, available, updated, labels, ports, dns, _, revision in _rows(text, 10):
        replicas = _number(desired) if desired.strip() else (0 if kind == "Deployment" else 1)
        if kind == "DaemonSet":
            replicas = 0
        world.workloads[name] = Workload(
            kind,
            name,
            replicas,
            _number(available),
            _number(updated),
            _mapping(labels),
            tuple(int(port) for port in ports.split() if port.isdigit()),
            dns,
            _number(revision),
        )


def read_services(world: World, text: str) -> None:
    world.services = {}
    for name, selector, ports in _rows(text, 3):
        try:
            listed = json.loads(ports) if ports else []
        except ValueError:
            listed = []
        world.services[name] = Service(name, _mapping(selector), listed)


def read_endpoints(world: World, text: str) -> None:
    world.ready_services = {service for service, ready in _rows(text, 2) if "true" in ready}


def read_pods(world: World, text: str) -> None:
    world.pods = [
        Pod(
            name,
            owner,
            phase,
            bool(ready) and "false" not in ready,
            waiting,
            max((_number(n) for n in restarts.split()), default=0),
        )
        for name, owner, phase, ready, waiting, restarts in _rows(text, 6)
    ]


def read_events(world: World, text: str) -> None:
    world.events = [(kind, name, reason, message) for kind, name, reason, message in _rows(text, 4)]


def read_alerts(world: World, text: str) -> None:
    world.alerts = [line for line in text.splitlines() if line.startswith("firing ")]


def read_quotas(world: World, text: str) -> None:
    world.quotas = [] if text.startswith(("(nothing)", "Error")) else text.split()


def read_policies(world: World, text: str) -> None:
    world.policies = [(row[0], row[1], row[2], row[3]) for row in _rows(text, 4)]


QUERIES = (
    (WORKLOADS, read_workloads),
    (SERVICES, read_services),
    (ENDPOINTS, read_endpoints),
    (PODS, read_pods),
    (EVENTS, read_events),
    (QUOTAS, read_quotas),
    (POLICIES, read_policies),
)


def command(template: str, namespace: str) -> str:
    """A query as an action."""
    return f"```\n{template.replace('{ns}', namespace)}\n```"


def namespace_in(text: str) -> str:
    """The namespace in a task's description."""
    match = re.search(r"namespace '([a-z0-9-]+)'", text)
    return match.group(1) if match else "default"
