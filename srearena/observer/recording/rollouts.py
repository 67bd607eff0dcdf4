"""Earlier versions of Deployments, from the pod templates of their old ReplicaSets.

A recorder that starts after a Deployment has changed can still record what it was before, as `kubectl rollout history`
does. Each old template becomes a version of the Deployment, with the creation time of its ReplicaSet.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from datetime import datetime
from itertools import accumulate
from typing import Any

import orjson

from srearena.observer.recording.raw_files import LOG_COLUMNS, OBJECTS, RawFiles, log_row, mapping
from srearena.service.kubernetes import Obj

_REVISION = "deployment.kubernetes.io/revision"
_HASH = "pod-template-hash"


def write_rollouts(objects: Mapping[tuple[str, str, str], Obj], files: RawFiles, *, since: float) -> int:
    """Write the versions that every Deployment has had since a time, less the present one; returns their number."""
    count = 0
    for (resource, namespace, name), deployment in sorted(objects.items()):
        if resource != "deployments.apps":
            continue
        versions = _versions(objects, namespace, name, deployment)
        older = sum(time <= since for time, _ in versions)
        for began, replica_set in versions[max(older - 1, 0) :]:
            if _revision(replica_set) == _revision(deployment):
                break  # the present one
            time = max(began, since)
            body = orjson.dumps(_version(deployment, replica_set)).decode()
            attributes = mapping({"k8s.resource.name": "deployments"})
            row = log_row(
                round(time * 1e6) * 1000, body, mapping({"k8s.namespace.name": namespace}), LogAttributes=attributes
            )
            files.add(OBJECTS, LOG_COLUMNS, row)
            count += 1
    return count


def _versions(
    objects: Mapping[tuple[str, str, str], Obj], namespace: str, name: str, deployment: Obj
) -> list[tuple[float, Obj]]:
    """The ReplicaSets of a Deployment in order, and when each became the present one at the earliest."""
    current = _revision(deployment)
    owned = [
        obj
        for (resource, scope, _), obj in objects.items()
        if resource == "replicasets.apps"
        and scope == namespace
        and _owned_by(obj, name)
        and 0 < _revision(obj) <= current
    ]
    ordered = sorted(owned, key=_revision)
    # A rollback reuses an old ReplicaSet, after that of the revision before.
    return list(zip(accumulate(map(_created, ordered), max), ordered, strict=True))


def _owned_by(obj: Obj, name: str) -> bool:
    owners = obj["metadata"].get("ownerReferences") or ()
    return any(owner.get("kind") == "Deployment" and owner.get("name") == name for owner in owners)


def _revision(obj: Obj) -> int:
    text = (obj["metadata"].get("annotations") or {}).get(_REVISION, "")
    return int(text) if text.isdigit() else 0


def _created(obj: Obj) -> float:
    return datetime.fromisoformat(str(obj["metadata"]["creationTimestamp"])).timestamp()


def _version(deployment: Obj, replica_set: Obj) -> dict[str, Any]:
    """The Deployment with that template; managed fields of that time are unknown."""
    version = deepcopy(deployment)
    template = deepcopy(replica_set["spec"]["template"])
    (template.get("metadata", {}).get("labels") or {}).pop(_HASH, None)
    version["spec"]["template"] = template
    version["metadata"].pop("managedFields", None)
    version["metadata"]["resourceVersion"] = "0"
    version.pop("status", None)
    return version
