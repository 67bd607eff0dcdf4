"""Claims that are not bound, and volumes that several pods fight for."""

from __future__ import annotations

import re
from collections.abc import Iterator

from clients.rules import commands
from clients.rules.changes import suspicious_revision
from clients.rules.hypotheses import Hypothesis, Repair, Strength
from clients.rules.runbooks import runbook
from clients.rules.system import Obj, System, name_of, namespace_of, path_of, template_of

_NO_CLAIM = re.compile(r'persistentvolumeclaim "([^"]+)" not found')


def _claims(workload: Obj) -> list[str]:
    volumes = template_of(workload)["spec"].get("volumes") or ()
    return [str(one["persistentVolumeClaim"]["claimName"]) for one in volumes if "persistentVolumeClaim" in one]


@runbook
def claim_missing(system: System) -> Iterator[Hypothesis]:
    """A pod mounts a claim that does not exist: one of another name is meant, or it was deleted."""
    for workload in system.workloads:
        if not system.unready(workload):
            continue
        for claim in _claims(workload):
            if system.find("persistentvolumeclaims", claim, namespace_of(workload)) is not None:
                continue
            revision = suspicious_revision(system, workload) if workload["kind"] == "Deployment" else None
            if revision is not None and system.preceded_trouble(revision.at):
                continue
            yield Hypothesis(
                path_of(workload),
                f"it mounts the claim {claim}, which does not exist",
                Strength.CONFIRMED,
                _new_claim(system, workload, claim),
            )


def _new_claim(system: System, workload: Obj, claim: str) -> list[Repair]:
    """The claim anew, as large as its siblings."""
    used = {one for other in system.workloads for one in _claims(other)}
    spare = [
        one
        for one in system.own("persistentvolumeclaims")
        if namespace_of(one) == namespace_of(workload) and name_of(one) not in used
    ]
    if len(spare) == 1:
        for index, volume in enumerate(template_of(workload)["spec"].get("volumes") or ()):
            if (volume.get("persistentVolumeClaim") or {}).get("claimName") == claim:
                path = ("spec", "template", "spec", "volumes", index, "persistentVolumeClaim", "claimName")
                return [commands.patch(workload, [(path, name_of(spare[0]))])]
    siblings = system.own("persistentvolumeclaims")
    if not siblings:
        return []
    spec = {
        key: siblings[0]["spec"][key]
        for key in ("accessModes", "resources", "storageClassName", "volumeMode")
        if key in siblings[0]["spec"]
    }
    metadata = {"name": claim, "namespace": namespace_of(workload)}
    manifest = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec}
    return [commands.apply(manifest)]


@runbook
def claim_not_bound(system: System) -> Iterator[Hypothesis]:
    """No volume fits a claim: its class does not exist, or a released volume keeps its old owner."""
    classes = {name_of(one) for one in system.all("storageclasses")}
    for claim in system.own("persistentvolumeclaims"):
        if (claim.get("status") or {}).get("phase") != "Pending":
            continue
        users = {name_of(one) for one in system.workloads if name_of(claim) in _claims(one)}
        storage_class = claim["spec"].get("storageClassName")
        released = [
            volume
            for volume in system.all("persistentvolumes")
            if (volume.get("status") or {}).get("phase") in ("Released", "Failed")
            and (volume["spec"].get("claimRef") or {}).get("name") == name_of(claim)
        ]
        if released:
            repairs = [commands.patch(released[0], [(("spec", "claimRef"), None)])]
            why = f"the volume {name_of(released[0])} still belongs to a deleted claim"
        elif storage_class and storage_class not in classes:
            repairs = []
            why = f"its storage class {storage_class} does not exist"
        else:
            continue
        if claim["metadata"].get("ownerReferences"):
            continue
        yield Hypothesis(
            path_of(claim), why, Strength.CONFIRMED, repairs, frozenset(users or {name_of(claim)}), "Misconfiguration"
        )
