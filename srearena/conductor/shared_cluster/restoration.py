"""Restores a shared cluster: deletes added objects, reverts changed ones, and creates deleted ones again.

It compares the cluster with the inventory and acts on the differences only, so it can be repeated, also after a crash.
A namespace is deleted only if the ledger names it and it is younger than the run; nodes are never deleted; of other
added objects only those of the run are deleted (`ownership`), the others are reported.
"""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable
from dataclasses import dataclass, field

from srearena.cluster.base import Cluster, ClusterError, NodeAccess
from srearena.conductor.grading.baseline import Difference
from srearena.conductor.shared_cluster.inventory import CLUSTER_WIDE, ONLY_NAMES, comparable, take_inventory
from srearena.conductor.shared_cluster.ledger import Ledger
from srearena.conductor.shared_cluster.ownership import is_ours
from srearena.errors import SreArenaError
from srearena.generators.fault.edits import as_new
from srearena.service.errors import Conflict, Invalid, NotFound
from srearena.service.kubernetes import Kubernetes, Obj

_ROUNDS = 24
_PAUSE = 5.0
"""Seconds; 24 rounds of 5 s give provisioners two minutes to reclaim volumes."""
_NAMESPACE_TIMEOUT = 600.0
"""Seconds; chosen well above the longest deletion of an application's namespace on a busy kind cluster."""
_ORDER = {resource: number for number, resource in enumerate(CLUSTER_WIDE)}
Say = Callable[[str], None]


@dataclass(slots=True)
class Restoration:
    """The result of restoring a cluster."""

    done: list[str] = field(default_factory=list)
    unrestored: list[str] = field(default_factory=list)
    """Remaining differences, with the reason."""
    foreign: list[str] = field(default_factory=list)
    """Objects that appeared during the run and are not known to belong to it."""


def plan(api: Kubernetes, ledger: Ledger) -> list[str]:
    """Describe what `restore` would do, without changing anything."""
    steps = [f"delete namespace {name}" for name in _own_namespaces(api, ledger)]
    for difference in _differences(api, ledger):
        verb = {"added": "delete", "removed": "create again", "changed": "change back"}[difference.how]
        if _foreign(api, difference, ledger):
            verb = "keep, because it may belong to others,"
        resource, namespace, name = difference.key
        steps.append(f"{verb} {resource}/{name}" + (f" in {namespace}" if namespace else ""))
    return steps


def restore(
    cluster: Cluster, api: Kubernetes, ledger: Ledger, say: Say = lambda text: None, nodes: NodeAccess | None = None
) -> Restoration:
    """Restore the state of the ledger's inventory."""
    report = Restoration()
    machines = nodes or cluster.nodes
    if ledger.machines and "restore" in machines.operations():
        _restore_machines(api, machines, report)
    # Webhooks and admission policies first: they could refuse every other change.
    _round(api, ledger, report, only=CLUSTER_WIDE[:4])
    _delete_namespaces(cluster, api, ledger, report, say)
    for attempt in range(_ROUNDS):
        report.unrestored = _round(api, ledger, report)
        if not report.unrestored:
            break
        if attempt < _ROUNDS - 1:
            cluster.wait(_PAUSE)
    report.unrestored += [f"namespace {name} still exists" for name in _own_namespaces(api, ledger)]
    report.foreign = sorted({str(d) for d in _differences(api, ledger) if _foreign(api, d, ledger)})
    return report


def _restore_machines(api: Kubernetes, machines: NodeAccess, report: Restoration) -> None:
    for node in api.list("nodes"):
        name = node["metadata"]["name"]
        try:
            machines.perform("restore", name)
            report.done.append(f"machine {name} restored")
        except SreArenaError as problem:
            report.done.append(f"machine {name} could not be restored: {problem}")


# Namespaces


def _own_namespaces(api: Kubernetes, ledger: Ledger) -> list[str]:
    """The existing namespaces of the run: in the ledger, not in the inventory, and younger than the run."""
    names = []
    for name in ledger.namespaces:
        obj = api.find("namespaces", name)
        recorded = ledger.inventory.get("namespaces", name)
        if obj is not None and recorded is None and obj["metadata"]["creationTimestamp"] >= ledger.begun:
            names.append(name)
    return names


def _delete_namespaces(cluster: Cluster, api: Kubernetes, ledger: Ledger, report: Restoration, say: Say) -> None:
    names = _own_namespaces(api, ledger)
    for name in names:
        say(f"deleting namespace {name}")
        api.delete("namespaces", name)
    waited = 0.0
    while _own_namespaces(api, ledger) and waited < _NAMESPACE_TIMEOUT:
        cluster.wait(_PAUSE)
        waited += _PAUSE
    report.done += [f"namespace {name} deleted" for name in names if api.find("namespaces", name) is None]


# Everything else


def _differences(api: Kubernetes, ledger: Ledger) -> list[Difference]:
    now = take_inventory(api)
    compared = comparable(ledger.inventory, now)
    differences = [
        d
        for d in ledger.inventory.differences(now)
        if d.key[0] in compared
        and not (d.key[0] in ONLY_NAMES and d.how != "added")
        and not (d.key[0] == "namespaces" and d.key[2] in ledger.namespaces)
        and not (d.key[0] == "nodes" and d.how != "changed")
    ]
    return sorted(differences, key=lambda d: (_ORDER.get(d.key[0], len(_ORDER)), d.key))


def _foreign(api: Kubernetes, difference: Difference, ledger: Ledger) -> bool:
    """Whether the difference was made by other users of the cluster."""
    resource, namespace, name = difference.key
    if resource == "namespaces" and difference.how != "changed":
        return True
    if difference.how != "added":
        return False
    obj = api.find(resource, name, namespace or None)
    return obj is not None and not is_ours(obj, ledger)


def _round(api: Kubernetes, ledger: Ledger, report: Restoration, only: tuple[str, ...] = ()) -> list[str]:
    """Undo all differences once; return those that remain, with the reason."""
    failures = []
    for difference in _differences(api, ledger):
        if (only and difference.key[0] not in only) or _foreign(api, difference, ledger):
            continue
        try:
            _undo(api, difference, ledger)
            report.done.append(f"{difference}: restored")
        except SreArenaError as problem:
            failures.append(f"{difference}: {problem}")
    if failures:
        return failures
    return [] if only else [str(d) for d in _differences(api, ledger) if not _foreign(api, d, ledger)]


def _undo(api: Kubernetes, difference: Difference, ledger: Ledger) -> None:
    resource, namespace, name = difference.key
    place = namespace or None
    before = ledger.inventory.get(resource, name, namespace)
    if difference.how == "added":
        if resource == "persistentvolumes" and _being_reclaimed(api.find(resource, name)):
            raise ClusterError("its provisioner has not reclaimed it yet")
        api.delete(resource, name, place)
    elif before is not None and difference.how == "removed":
        api.create(as_new(_intent(before)), place)
    elif before is not None:
        _change_back(api, resource, name, place, before)


def _being_reclaimed(volume: Obj | None) -> bool:
    """Whether the provisioner deletes the volume and its data: deleting it here would leave the data behind."""
    if volume is None:
        return False
    spec, annotations = volume.get("spec") or {}, volume["metadata"].get("annotations") or {}
    provisioned = (
        spec.get("persistentVolumeReclaimPolicy") == "Delete" and "pv.kubernetes.io/provisioned-by" in annotations
    )
    return provisioned and (volume.get("status") or {}).get("phase") != "Failed"


def _intent(recorded: Obj) -> Obj:
    return {key: value for key, value in recorded.items() if key != "status"}


def _change_back(api: Kubernetes, resource: str, name: str, namespace: str | None, before: Obj) -> None:
    for _ in range(3):
        now = api.get(resource, name, namespace)
        with contextlib.suppress(Conflict):
            try:
                api.replace(_merged(now, before), namespace)
            except Invalid:
                # Immutable fields need a new object.
                if before["kind"] in ("Node", "Namespace", "PersistentVolume"):
                    raise
                api.delete(resource, name, namespace)
                with contextlib.suppress(NotFound):
                    api.create(as_new(_intent(before)), namespace)
            return
    raise Conflict(f"{resource}/{name} keeps changing")


def _merged(now: Obj, before: Obj) -> Obj:
    """The current object with the recorded intent."""
    merged = copy.deepcopy(now)
    if before["kind"] == "Node":
        conditions = [t for t in (now.get("spec") or {}).get("taints") or () if _by_condition(t)]
        wanted = [t for t in (before.get("spec") or {}).get("taints") or () if not _by_condition(t)]
        merged["spec"]["taints"] = [*wanted, *conditions]
        merged["spec"]["unschedulable"] = bool((before.get("spec") or {}).get("unschedulable"))
    elif before["kind"] != "Namespace":
        for key in (set(now) | set(before)) - {"metadata", "status", "apiVersion", "kind"}:
            if key in before:
                merged[key] = copy.deepcopy(before[key])
            else:
                merged.pop(key)
        if before["kind"] == "PersistentVolume" and (now.get("spec") or {}).get("claimRef"):
            merged["spec"]["claimRef"] = now["spec"]["claimRef"]
    for key in ("labels", "annotations") if before["kind"] not in ("Node", "Namespace") else ("labels",):
        merged["metadata"][key] = copy.deepcopy(before["metadata"].get(key) or {})
    return merged


def _by_condition(taint: Obj) -> bool:
    """Whether a controller sets the taint by the node's conditions; a cordon follows `unschedulable` instead."""
    return str(taint.get("key", "")).startswith("node.kubernetes.io/") and taint.get("key") != (
        "node.kubernetes.io/unschedulable"
    )
