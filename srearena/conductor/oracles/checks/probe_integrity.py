"""Whether a probe ran as the harness sent it, or was changed on the way.

An admission webhook or policy may rewrite a new pod, its image can be changed while it waits, and a node may hold
another image under the same name. A probe that was changed says nothing about the system, so its output is not read.

Why it cannot be gamed: the stored pod is compared with the sent one field by field, when it was created and when it has
ended. A field that the harness did not send must be one that Kubernetes itself fills in, with Kubernetes' own value, or
have been there on the healthy system too. The image that ran is compared by its digest.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from srearena.service.kubernetes import Obj

if TYPE_CHECKING:
    from srearena.conductor.problems.base import Problem

_FACTS = "probes"
_DEFAULTS: dict[str, Any] = {
    "spec.dnsPolicy": "ClusterFirst",
    "spec.enableServiceLinks": True,
    "spec.schedulerName": "default-scheduler",
    "spec.securityContext": {},
    "spec.serviceAccount": "default",
    "spec.serviceAccountName": "default",
    "spec.containers.0.imagePullPolicy": "IfNotPresent",
    "spec.containers.0.terminationMessagePath": "/dev/termination-log",
    "spec.containers.0.terminationMessagePolicy": "File",
}
"""Fields that the API server fills in, with its values."""
_ASSIGNED = frozenset(
    {
        "spec.nodeName",
        "spec.imagePullSecrets",
        "spec.preemptionPolicy",
        "spec.priority",
        "spec.priorityClassName",
        "spec.tolerations",
        "spec.containers.0.resources.limits.ephemeral-storage",
        "spec.containers.0.resources.requests.ephemeral-storage",
        "metadata.annotations.kubernetes.io/limit-ranger",
    }
)
"""Fields that the scheduler and the built-in admission plugins set; none decides what the pod does or whom it calls."""


def alterations(sent: Obj, stored: Obj) -> list[str]:
    """The fields in which a stored pod differs from the one that was sent, as `path=value`."""
    metadata = {
        key: (stored.get("metadata") or {}).get(key)
        for key in ("labels", "annotations", "finalizers", "ownerReferences")
    }
    labels = {"labels": sent["metadata"].get("labels", {}), "annotations": {}}
    found = _differences("metadata", labels, {key: value for key, value in metadata.items() if value})
    return [*found, *_differences("spec", sent["spec"], stored.get("spec") or {})]


def _differences(path: str, sent: Any, stored: Any) -> Iterator[str]:
    if isinstance(sent, dict) and isinstance(stored, dict):
        for key in sorted(sent.keys() | stored.keys()):
            yield from _differences(f"{path}.{key}", sent.get(key), stored.get(key))
        return
    if isinstance(sent, list) and isinstance(stored, list) and len(sent) == len(stored):
        for number, (one, other) in enumerate(zip(sent, stored, strict=True)):
            yield from _differences(f"{path}.{number}", one, other)
        return
    if path in _ASSIGNED or (sent or None) == (stored or None) or (sent is None and _DEFAULTS.get(path) == stored):
        return
    yield f"{path}={json.dumps(stored, sort_keys=True)}"


def images_run(pod: Obj) -> dict[str, str]:
    """The digests of the images that a pod ran, by the names in its spec."""
    images = {container["name"]: container["image"] for container in pod["spec"]["containers"]}
    statuses = (pod.get("status") or {}).get("containerStatuses") or ()
    return {
        images[status["name"]]: digest
        for status in statuses
        if status["name"] in images and (digest := str(status.get("imageID", "")).rpartition("@")[2])
    }


def unexpected(problem: Problem, sent: Obj, stored: Obj) -> list[str]:
    """What is foreign about a probe; on the healthy system, what it shows there is recorded as expected."""
    found, images = alterations(sent, stored), images_run(stored)
    if problem.baseline is None:
        return found
    facts: dict[str, Any] = problem.baseline.facts.setdefault(_FACTS, {"alterations": [], "images": {}})
    if not problem.injected_at:
        facts["alterations"] = sorted({*facts["alterations"], *found})
        facts["images"].update(images)
        return []
    known: dict[str, str] = facts["images"]
    return [
        *(line for line in found if line not in facts["alterations"]),
        *(f"{image} is {digest}" for image, digest in images.items() if known.get(image, digest) != digest),
    ]
