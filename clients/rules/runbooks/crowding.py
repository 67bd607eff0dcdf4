"""Pods that take what others need: connections of a node's table, processor time; and pods that lose packets."""

from __future__ import annotations

from collections.abc import Iterator

from clients.rules import commands
from clients.rules.changes import suspicious_revision
from clients.rules.hypotheses import Hypothesis, Repair, Strength
from clients.rules.runbooks import runbook
from clients.rules.system import Obj, System, name_of, path_of, template_of


def _workload(system: System, pod: str) -> Obj | None:
    """The workload of a pod in any namespace."""
    own = system.workload(system.owner_of(pod))
    if own is not None:
        return own
    known = [one for resource in ("deployments", "statefulsets", "jobs") for one in system.all(resource)]
    fitting = [one for one in known if pod.startswith(f"{name_of(one)}-")]
    return max(fitting, key=lambda one: len(name_of(one)), default=None)


@runbook
def connection_table_full(system: System) -> Iterator[Hypothesis]:
    """The connection table of a node is full; who keeps most connections there fills it."""
    for full in (one for one in system.signals if one.name == "connections"):
        holders = [one for one in system.signals if one.name == "sockets" and one.node in ("", full.node)]
        for holder in sorted(holders, key=lambda one: -one.value)[:1]:
            workload = _workload(system, holder.pod)
            if workload is not None:
                yield Hypothesis(
                    path_of(workload),
                    f"its pods keep {holder.value:g} connections, and the connection table of {full.node} is full",
                    Strength.CONFIRMED,
                    [commands.scale(workload, 0)] if workload["kind"] != "Job" else [commands.delete(workload)],
                    frozenset({name_of(one) for one in system.workloads} | {name_of(workload)}),
                    "Operation Error",
                )


@runbook
def takes_the_processors(system: System) -> Iterator[Hypothesis]:
    """A node is busy, and a pod without a limit that no alert is about takes most of it."""
    busy = {one.node for one in system.signals if one.name == "busy"}
    if not busy:
        return
    used = sorted((one for one in system.signals if one.name == "cpu"), key=lambda one: -one.value)
    if not used or used[0].value < 1 or (len(used) > 1 and used[0].value < 1.5 * used[1].value):
        return
    workload = _workload(system, used[0].pod)
    if workload is None or workload["kind"] == "Job":
        return
    yield Hypothesis(
        path_of(workload),
        f"it takes {used[0].value:.1f} processors, and {', '.join(sorted(busy))} has none left",
        Strength.LIKELY,
        _limited(system, workload),
        frozenset({name_of(workload), *system.suffering}),
        "Operation Error",
    )


def _limited(system: System, workload: Obj) -> list[Repair]:
    """The limits that an earlier revision had, or moderate ones."""
    revision = suspicious_revision(system, workload) if workload["kind"] == "Deployment" else None
    if revision is not None:
        return [commands.revert(workload, revision.differences)]
    changes = []
    for index, one in enumerate(template_of(workload)["spec"]["containers"]):
        resources = one.get("resources") or {}
        limits = resources.get("limits") or {}
        if "cpu" not in limits:
            path = ("spec", "template", "spec", "containers", index, "resources")
            changes.append((path, {**resources, "limits": {**limits, "cpu": "500m"}}))
    return [commands.patch(workload, changes)] if changes else []


@runbook
def loses_packets(system: System) -> Iterator[Hypothesis]:
    """Packets of one pod are lost at its interface: a new pod has a new one."""
    lossy = sorted((one for one in system.signals if one.name == "dropped"), key=lambda one: -one.value)
    for one in lossy[:1] if system.alerts else ():
        workload = _workload(system, one.pod)
        pods = [pod for pod in system.own("pods") if name_of(pod) == one.pod]
        if workload is not None and pods:
            yield Hypothesis(
                path_of(workload),
                f"{one.value:.2g} packets a second of its pod are lost at its interface",
                Strength.CONFIRMED,
                [commands.delete(pod) for pod in pods],
                frozenset({name_of(workload)}),
                "Network",
            )
