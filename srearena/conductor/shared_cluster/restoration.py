"""Leaving a cluster as it was found: what came goes, what changed is changed back, what went is made again.

It compares with the inventory and acts on differences alone, so that it can be repeated, also after a crash in the
middle of itself. A namespace goes only if it is one that the ledger names and is younger than the visit; nodes are
never removed; of what else came, only what is known to be ours goes (`ownership`): the rest is named, and stays.
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
_NAMESPACE_PATIENCE = 600.0
_ORDER = {resource: number for number, resource in enumerate(CLUSTER_WIDE)}
Say = Callable[[str], None]


@dataclass(slots=True)
class Leaving:
    """What came of it."""

    done: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    """What is not as it was, and why."""
    alone: list[str] = field(default_factory=list)
    """What appeared meanwhile and is not known to be ours."""


def plan(api: Kubernetes, ledger: Ledger) -> list[str]:
    """What `restore` would do, in words; nothing is changed."""
    words = [f"delete namespace {name}" for name in _ours(api, ledger)]
    for difference in _differences(api, ledger):
        verb = {"added": "delete", "removed": "create again", "changed": "change back"}[difference.how]
        if _foreign(api, difference, ledger):
            verb = "leave alone, since it is not known to be ours,"
        resource, namespace, name = difference.key
        words.append(f"{verb} {resource}/{name}" + (f" in {namespace}" if namespace else ""))
    return words


def restore(
    cluster: Cluster, api: Kubernetes, ledger: Ledger, say: Say = lambda text: None, nodes: NodeAccess | None = None
) -> Leaving:
    """Bring the cluster back to the ledger's inventory."""
    leaving = Leaving()
    machines = nodes or cluster.nodes
    if ledger.machines and "restore" in machines.operations():
        _restore_machines(api, machines, leaving)
    # Webhooks and quotas first: they could refuse everything else.
    _round(api, ledger, leaving, only=CLUSTER_WIDE[:4])
    _delete_namespaces(cluster, api, ledger, leaving, say)
    for attempt in range(_ROUNDS):
        leaving.left = _round(api, ledger, leaving)
        if not leaving.left:
            break
        if attempt < _ROUNDS - 1:
            cluster.wait(_PAUSE)
    leaving.left += [f"namespace {name} is still there" for name in _ours(api, ledger)]
    leaving.alone = sorted({str(d) for d in _differences(api, ledger) if _foreign(api, d, ledger)})
    return leaving


def _restore_machines(api: Kubernetes, machines: NodeAccess, leaving: Leaving) -> None:
    for node in api.list("nodes"):
        name = node["metadata"]["name"]
        try:
            machines.perform("restore", name)
            leaving.done.append(f"machine {name} restored")
        except SreArenaError as problem:
            leaving.done.append(f"machine {name} could not be restored: {problem}")


# Namespaces


def _ours(api: Kubernetes, ledger: Ledger) -> list[str]:
    """The namespaces of this visit that are there: planned, not there before, and made since."""
    found = []
    for name in ledger.namespaces:
        obj = api.find("namespaces", name)
        known = ledger.inventory.get("namespaces", name)
        if obj is not None and known is None and obj["metadata"]["creationTimestamp"] >= ledger.begun:
            found.append(name)
    return found


def _delete_namespaces(cluster: Cluster, api: Kubernetes, ledger: Ledger, leaving: Leaving, say: Say) -> None:
    names = _ours(api, ledger)
    for name in names:
        say(f"deleting namespace {name}")
        api.delete("namespaces", name)
    waited = 0.0
    while _ours(api, ledger) and waited < _NAMESPACE_PATIENCE:
        cluster.wait(_PAUSE)
        waited += _PAUSE
    leaving.done += [f"namespace {name} deleted" for name in names if api.find("namespaces", name) is None]


# Everything else


def _differences(api: Kubernetes, ledger: Ledger) -> list[Difference]:
    now = take_inventory(api)
    known = comparable(ledger.inventory, now)
    kept = [
        d
        for d in ledger.inventory.differences(now)
        if d.key[0] in known
        and not (d.key[0] in ONLY_NAMES and d.how != "added")
        and not (d.key[0] == "namespaces" and d.key[2] in ledger.namespaces)
        and not (d.key[0] == "nodes" and d.how != "changed")
    ]
    return sorted(kept, key=lambda d: (_ORDER.get(d.key[0], len(_ORDER)), d.key))


def _foreign(api: Kubernetes, difference: Difference, ledger: Ledger) -> bool:
    """Whether something that appeared, or went, is nothing of ours."""
    resource, namespace, name = difference.key
    if resource == "namespaces" and difference.how != "changed":
        return True
    if difference.how != "added":
        return False
    obj = api.find(resource, name, namespace or None)
    return obj is not None and not is_ours(obj, ledger)


def _round(api: Kubernetes, ledger: Ledger, leaving: Leaving, only: tuple[str, ...] = ()) -> list[str]:
    """One pass over the differences; those that remain, with what stood in the way."""
    left = []
    for difference in _differences(api, ledger):
        if (only and difference.key[0] not in only) or _foreign(api, difference, ledger):
            continue
        try:
            _undo(api, difference, ledger)
            leaving.done.append(f"{difference}: put right")
        except SreArenaError as problem:
            left.append(f"{difference}: {problem}")
    if left:
        return left
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
    """Whether somebody else takes a volume away, and what is stored there with it: then that is not ours to do."""
    if volume is None:
        return False
    spec, notes = volume.get("spec") or {}, volume["metadata"].get("annotations") or {}
    given = spec.get("persistentVolumeReclaimPolicy") == "Delete" and "pv.kubernetes.io/provisioned-by" in notes
    return given and (volume.get("status") or {}).get("phase") != "Failed"


def _intent(kept: Obj) -> Obj:
    return {key: value for key, value in kept.items() if key != "status"}


def _change_back(api: Kubernetes, resource: str, name: str, namespace: str | None, before: Obj) -> None:
    for _ in range(3):
        now = api.get(resource, name, namespace)
        with contextlib.suppress(Conflict):
            try:
                api.replace(_merged(now, before), namespace)
            except Invalid:
                # Some fields cannot be changed, only made anew.
                if before["kind"] in ("Node", "Namespace", "PersistentVolume"):
                    raise
                api.delete(resource, name, namespace)
                with contextlib.suppress(NotFound):
                    api.create(as_new(_intent(before)), namespace)
            return
    raise Conflict(f"{resource}/{name} keeps changing")


def _merged(now: Obj, before: Obj) -> Obj:
    """The object as it is, with what its author had said before."""
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
    """Taints that follow a node's conditions come and go by themselves; a cordon is the field's, not the taint's."""
    return str(taint.get("key", "")).startswith("node.kubernetes.io/") and taint.get("key") != (
        "node.kubernetes.io/unschedulable"
    )
