"""Decides whether an object that appeared during a run was created by the run. In doubt it belongs to others.

Evidence is the journal (objects created through the harness's client, or by the agent through its recording proxy), or
the object itself, where it refers to namespaces of the run and to nothing else: these did not exist before the run, so
no other user refers to them. Names, labels and field managers are no evidence: all users use the same tools.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from srearena.conductor.shared_cluster.ledger import Ledger
from srearena.service.kubernetes import Obj

_RELEASE = "meta.helm.sh/release-namespace"


def is_ours(obj: Obj, ledger: Ledger) -> bool:
    """Whether the object must be deleted at the end of the run."""
    metadata = obj["metadata"]
    if metadata.get("ownerReferences") or metadata["creationTimestamp"] < ledger.begun:
        return False  # it is deleted with its owner; or it is older than the run, whatever the journal says
    return metadata.get("uid") in ledger.journal.uids() or _refers_only_to(obj, ledger.namespaces)


def _refers_only_to(obj: Obj, namespaces: Collection[str]) -> bool:
    referred = set(_referred_namespaces(obj))
    return bool(referred) and referred <= set(namespaces)


def _referred_namespaces(obj: Obj) -> Iterator[Any]:
    """Yield the namespaces that an object refers to; None for a reference without a namespace."""
    release = (obj["metadata"].get("annotations") or {}).get(_RELEASE)
    if release:
        yield release
    match obj["kind"]:
        case "PersistentVolume":
            claim = (obj.get("spec") or {}).get("claimRef")
            if claim:
                yield claim.get("namespace")
        case "ClusterRoleBinding" | "RoleBinding":
            for subject in obj.get("subjects") or ():
                yield subject.get("namespace")
        case "ValidatingWebhookConfiguration" | "MutatingWebhookConfiguration":
            for webhook in obj.get("webhooks") or ():
                yield ((webhook.get("clientConfig") or {}).get("service") or {}).get("namespace")
