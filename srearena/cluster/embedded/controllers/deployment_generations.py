"""Generations of a deployment: the ReplicaSet of a template, its name, labels and revision. Pure functions."""

from __future__ import annotations

from srearena.cluster.embedded.controllers.deployment_rollout import DESIRED, MOST, bounds_of, replicas_of
from srearena.cluster.embedded.controllers.template_hash import template_hash
from srearena.cluster.embedded.objects import (
    Obj,
    annotations_of,
    copy_of,
    dig,
    meta,
    name_of,
    namespace_of,
    owner_reference,
)

HASH = "pod-template-hash"
REVISION = "deployment.kubernetes.io/revision"
HISTORY = "deployment.kubernetes.io/revision-history"
_HISTORY_LENGTH = 2000
_NOT_COPIED = frozenset(
    {
        "kubectl.kubernetes.io/last-applied-configuration",
        REVISION,
        HISTORY,
        DESIRED,
        MOST,
        "deprecated.deployment.rollback.to",
    }
)


def revision_of(obj: Obj) -> int:
    text = annotations_of(obj).get(REVISION, "")
    return int(text) if text.isdigit() else 0


def is_generation_of(deployment: Obj, replica_set: Obj) -> bool:
    """Whether the ReplicaSet has the deployment's present template, its own hash label aside."""
    wanted, found = deployment["spec"]["template"], dig(replica_set, "spec", "template", default={})
    if wanted.get("spec") != found.get("spec"):
        return False
    return _metadata(wanted) == _metadata(found)


def _metadata(template: Obj) -> Obj:
    parts = dict(meta(template))
    parts["labels"] = {key: value for key, value in (parts.get("labels") or {}).items() if key != HASH}
    parts.pop("creationTimestamp", None)
    return {key: value for key, value in parts.items() if value}


def annotations_for(deployment: Obj, known: dict[str, str], revision: int) -> dict[str, str]:
    """The annotations of a ReplicaSet: those of the deployment, and the revision, which only increases.

    A ReplicaSet that is reused under a new revision records its earlier revisions.
    """
    wanted = {**known, **{k: v for k, v in annotations_of(deployment).items() if k not in _NOT_COPIED}}
    before = known.get(REVISION)
    if before is None or not before.isdigit() or int(before) < revision:
        wanted[REVISION] = str(revision)
        if before is not None:
            past = [entry for entry in known.get(HISTORY, "").split(",") if entry]
            past.append(before)
            while len(past) > 1 and len(",".join(past)) > _HISTORY_LENGTH:
                past.pop(0)
            wanted[HISTORY] = ",".join(past)
    return wanted


def generation_for(deployment: Obj, size: int, revision: int) -> Obj:
    """A new ReplicaSet for the deployment's template."""
    template = copy_of(deployment["spec"]["template"])
    mark = template_hash(template, dig(deployment, "status", "collisionCount", default=0))
    labels = template.setdefault("metadata", {}).setdefault("labels", {})
    labels[HASH] = mark
    selector = copy_of(deployment["spec"]["selector"])
    selector.setdefault("matchLabels", {})[HASH] = mark
    wanted = replicas_of(deployment)
    notes = {DESIRED: str(wanted), MOST: str(wanted + bounds_of(deployment).surge)}
    spec: Obj = {"replicas": size, "selector": selector, "template": template}
    if dig(deployment, "spec", "minReadySeconds"):
        spec["minReadySeconds"] = deployment["spec"]["minReadySeconds"]
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "name": f"{name_of(deployment)}-{mark}",
            "namespace": namespace_of(deployment),
            "labels": dict(labels),
            "annotations": {**annotations_for(deployment, {}, revision), **notes},
            "ownerReferences": [owner_reference(deployment)],
        },
        "spec": spec,
    }
