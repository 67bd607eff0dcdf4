"""Nodes that do not answer, and disks that answer with errors."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from clients.rules import commands
from clients.rules.hypotheses import Hypothesis, Strength
from clients.rules.runbooks import runbook
from clients.rules.system import Obj, System, name_of, path_of

_DISK_ERROR = re.compile(r"Input/output error|\bI/O error|\bEIO\b|bad block")
_OF_MACHINES = re.compile("Clock|Disk|Filesystem|Eviction|Pressure|Hardware|Kernel")


def _components(system: System, node: str) -> frozenset[str]:
    """The node, and the workloads that have pods on it."""
    pods = [pod for pod in system.own("pods") if pod["spec"].get("nodeName") == node]
    return frozenset({node, *(system.owner_of(name_of(pod)) for pod in pods)})


@runbook
def not_ready(system: System) -> Iterator[Hypothesis]:
    for node in system.all("nodes"):
        ready = [c for c in (node.get("status") or {}).get("conditions") or () if c["type"] == "Ready"]
        if ready and ready[0]["status"] != "True":
            yield Hypothesis(
                path_of(node),
                f"it is not ready: {ready[0].get('reason')}: {ready[0].get('message')}",
                Strength.CONFIRMED,
                components=_components(system, name_of(node)) | {name_of(one) for one in system.workloads},
                kind="Operation Error",
            )


@runbook
def under_pressure(system: System) -> Iterator[Hypothesis]:
    """The kubelet evicts pods from a node that is short of something."""
    for node in system.all("nodes"):
        pressed = [
            c["type"]
            for c in (node.get("status") or {}).get("conditions") or ()
            if c["type"].endswith("Pressure") and c["status"] == "True"
        ]
        if pressed:
            yield Hypothesis(
                path_of(node),
                f"it reports {', '.join(pressed)}",
                Strength.CONFIRMED,
                components=_components(system, name_of(node)),
            )


@runbook
def alerted(system: System) -> Iterator[Hypothesis]:
    """Alerts about a machine itself: its clock, its disks, its connection table."""
    for alert in system.alerts:
        node = system.find("nodes", str(alert.labels.get("node") or alert.labels.get("instance") or ""), "")
        if node is not None and _OF_MACHINES.search(alert.name):
            yield Hypothesis(
                path_of(node),
                f"alert {alert.name}: {alert.text}"[:200],
                Strength.LIKELY,
                components=_components(system, name_of(node)),
            )


@runbook
def disk_errors(system: System) -> Iterator[Hypothesis]:
    """Programs on one node, and only there, get errors from its disk."""
    counts: Counter[str] = Counter()
    for pod in system.own("pods"):
        texts = [text for key, text in system.logs.items() if key.startswith(f"{name_of(pod)}/")]
        if any(_DISK_ERROR.search(text) for text in texts):
            counts[str(pod["spec"].get("nodeName"))] += 1
    for name in sorted(counts):
        node = system.find("nodes", name, "")
        if node is not None and len(counts) == 1:
            yield Hypothesis(
                path_of(node),
                f"its disk answers programs with errors ({counts[name]} pods)",
                Strength.CONFIRMED,
                components=_components(system, name),
                kind="Hardware",
            )


@runbook
def cordoned(system: System) -> Iterator[Hypothesis]:
    """Nodes that take no new pods, while pods wait for a node."""
    waiting = [
        pod
        for pod in system.own("pods")
        for c in (pod.get("status") or {}).get("conditions") or ()
        if c["type"] == "PodScheduled" and c["status"] == "False" and "unschedulable" in str(c.get("message"))
    ]
    closed: list[Obj] = [node for node in system.all("nodes") if node["spec"].get("unschedulable")]
    for node in closed if waiting else ():
        yield Hypothesis(
            path_of(node),
            "it is cordoned, and pods wait for a node",
            Strength.CONFIRMED,
            [commands.patch(node, [(("spec", "unschedulable"), None)])],
            frozenset(system.owner_of(name_of(pod)) for pod in waiting),
            "Operation Error",
        )
