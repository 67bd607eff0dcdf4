"""Whose is an object that appeared during a visit? Ours only where something says so; in doubt it is somebody else's.

What says so: the journal (made through the harness's client, or by the agent through the door it was given), or the
object itself, where it serves namespaces of ours and nothing else. These did not exist before the visit, so nobody else
has business with them. Names, labels and field managers say nothing: everybody uses the same tools.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from srearena.conductor.shared_cluster.ledger import Ledger
from srearena.service.kubernetes import Obj

_RELEASE = "meta.helm.sh/release-namespace"


def is_ours(obj: Obj, ledger: Ledger) -> bool:
    """Whether it has to go when we go."""
    metadata = obj["metadata"]
    if metadata.get("ownerReferences") or metadata["creationTimestamp"] < ledger.begun:
        return False  # it goes with its owner; or it was there before us, whatever our record says
    return metadata.get("uid") in ledger.journal.uids() or _serves_only(obj, ledger.namespaces)


def _serves_only(obj: Obj, namespaces: Collection[str]) -> bool:
    served = set(_served(obj))
    return bool(served) and served <= set(namespaces)


def _served(obj: Obj) -> Iterator[Any]:
    """The namespaces that an object says it is for; None stands for something beyond namespaces."""
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
