"""Custom resources that their operator cannot carry out, or that ask for more than the cluster has."""

from __future__ import annotations

from collections.abc import Iterator

from clients.rules import commands
from clients.rules.changes import Edit, created_at, edits
from clients.rules.hypotheses import Hypothesis, Repair, Strength
from clients.rules.runbooks import runbook
from clients.rules.system import Obj, System, moment, name_of, namespace_of, path_of

_STUCK = 60.0
"""Seconds; a controller takes its finalizer off within a few."""


def _edit(obj: Obj) -> Edit | None:
    """The latest edit of the desired state."""
    return next((one for one in edits(obj) if any(path[0] == "spec" for path in one.fields)), None)


@runbook
def deletion_stuck(system: System) -> Iterator[Hypothesis]:
    """An object was deleted a while ago, and a finalizer holds it: its controller does not do its part."""
    for resource in ("configmaps", "persistentvolumeclaims", "services", "deployments", "secrets", "namespaces"):
        for obj in system.own(resource):
            at = moment(str(obj["metadata"].get("deletionTimestamp") or ""))
            if not at or system.now - at < _STUCK or not obj["metadata"].get("finalizers"):
                continue
            yield Hypothesis(
                path_of(obj),
                f"it is being deleted for {system.now - at:.0f} s, and {obj['metadata']['finalizers'][0]} holds it",
                Strength.SYMPTOM,
                kind="Operation Error",
            )


@runbook
def refused_or_overloaded(system: System) -> Iterator[Hypothesis]:
    """Its operator warns about it, or it was edited before what it stands for began to suffer."""
    complaints = {
        (str(about.get("kind")), str(about.get("name"))): f"{reason}: {message}"
        for about, reason, message in system.warnings()
    }
    for obj in system.custom_objects:
        complaint = complaints.get((str(obj["kind"]), name_of(obj)), "")
        edit = _edit(obj)
        if edit is None and not complaint:
            continue
        affected = {
            name_of(one)
            for one in system.workloads
            if namespace_of(one) == namespace_of(obj)
            and (
                any(ref["name"] == name_of(obj) for ref in one["metadata"].get("ownerReferences") or ())
                or name_of(one).startswith(f"{name_of(obj)}-")
            )
        }
        suffering = affected & system.suffering
        recent = edit is not None and bool(system.alerts) and system.preceded_trouble(edit.at)
        if not complaint and not (recent and suffering):
            continue
        yield Hypothesis(
            path_of(obj),
            complaint[:250] or f"it was edited by {edit.manager if edit else '?'} before {sorted(suffering)} suffered",
            Strength.CONFIRMED,
            _taken_back(system, obj, edit, affected) if edit is not None else [],
            frozenset(affected | {name_of(obj)}),
        )


def _taken_back(system: System, obj: Obj, edit: Edit, affected: set[str]) -> list[Repair]:
    """The edited fields without what was added: replicas as there were, other settings removed."""
    changes: dict[tuple[str, ...], int | None] = {}
    for field in edit.fields:
        path = tuple(part for part in field[: next((i for i, p in enumerate(field) if ":" in p), len(field))])
        if len(path) < 2 or path[0] != "spec":
            continue
        if path[-1] == "replicas":
            owners = [one for one in affected if one.endswith(f"-{path[-2]}")]
            pods = [pod for one in owners for pod in system.pods_of(one) if created_at(pod) < edit.at]
            if pods:
                changes[path] = len(pods)
        else:
            changes[path] = None
    return [commands.patch(obj, changes.items())] if changes else []
