"""What controllers make, so that it is no operator's intent: recognized by an owner that really makes such objects.

Why it cannot be gamed: an owner reference is easy to write. So the owner must exist, in the same namespace, and its
controller must make an object like this one: pods and replica sets that it selects, with the names that it gives, jobs
with the names of a schedule, and their pods with the containers that they declare. What the garbage collector is about
to delete is no intent either. Custom resources say nothing about what their operators make: such objects are listed
apart (`made_by_operator`), for those who know which ones were there before.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from srearena.conductor.grading.pod_templates import containers, pod_spec
from srearena.service.kubernetes import Obj

Owners = Mapping[str, tuple[str, Obj]]
"""The group of its API and the object itself, by UID."""

_SYSTEM = "kube-system"
_MIRROR = "kubernetes.io/config.mirror"
_TOKEN_ENTRIES = frozenset(("ca.crt", "namespace", "token"))
_MADE_BY_OPERATORS = frozenset(
    "Pod ReplicaSet Job EndpointSlice Deployment StatefulSet DaemonSet Service ConfigMap Secret ServiceAccount "
    "PersistentVolumeClaim PodDisruptionBudget".split()
)
"""Kinds that operators create for their own resources. Roles, bindings and webhooks never count as generated, whatever
owner they name: an owner reference is easy to add, and must not hide them."""
_COLLECTED = frozenset(
    {
        *(("apps", kind) for kind in ("Deployment", "ReplicaSet", "StatefulSet", "DaemonSet")),
        *(("batch", kind) for kind in ("Job", "CronJob")),
        ("", "ReplicationController"),
    }
)
"""Kinds of controllers, with their groups, all of which a baseline includes."""


def _selects(owner: Obj, obj: Obj) -> bool:
    selector = (owner.get("spec") or {}).get("selector") or {}
    wanted = selector if owner["kind"] == "ReplicationController" else selector.get("matchLabels") or {}
    return bool(wanted) and wanted.items() <= (obj["metadata"].get("labels") or {}).items()


def _is_numbered(owner: Obj, obj: Obj) -> bool:
    """Whether a StatefulSet made the pod: it does not look at one with another name."""
    return bool(re.fullmatch(rf"{re.escape(owner['metadata']['name'])}-\d+", obj["metadata"]["name"]))


def runs_the_same(owner: Obj, obj: Obj) -> bool:
    """Whether a job or a job's pod runs what its owner declares: a finished job does not look at pods any more."""
    return _programs(owner) == _programs(obj)


def _programs(obj: Obj) -> list[tuple[Any, ...]]:
    return [
        (group, *(container.get(field) or None for field in ("name", "image", "command", "args")))
        for group, container in containers(pod_spec(obj))
    ]


def _is_scheduled(owner: Obj, obj: Obj) -> bool:
    """Whether a CronJob made the job: now or by an earlier template, which its jobs outlive (see `Leftovers`)."""
    name = rf"{re.escape(owner['metadata']['name'])}-\d{{8,10}}"
    return runs_the_same(owner, obj) or bool(re.fullmatch(name, obj["metadata"]["name"]))


def _is_mirror(owner: Obj, obj: Obj) -> bool:
    """A static pod of the control plane; agents create nothing in its namespace through the API."""
    metadata = obj["metadata"]
    return metadata.get("namespace") == _SYSTEM and _MIRROR in (metadata.get("annotations") or {})


def _is_slice(owner: Obj, obj: Obj) -> bool:
    manager = (obj["metadata"].get("labels") or {}).get("endpointslice.kubernetes.io/managed-by", "")
    return str(manager).endswith("-controller.k8s.io")


def _is_ephemeral_claim(owner: Obj, obj: Obj) -> bool:
    metadata, volumes = owner["metadata"], (owner.get("spec") or {}).get("volumes") or ()
    return obj["metadata"]["name"] in [f"{metadata['name']}-{one['name']}" for one in volumes if "ephemeral" in one]


_RULES: dict[tuple[str, str], tuple[Callable[[Obj, Obj], bool], ...]] = {
    ("ReplicaSet", "Pod"): (_selects,),
    ("ReplicationController", "Pod"): (_selects,),
    ("StatefulSet", "Pod"): (_selects, _is_numbered),
    ("DaemonSet", "Pod"): (_selects,),
    ("Job", "Pod"): (_selects, runs_the_same),
    ("Node", "Pod"): (_is_mirror,),
    ("Deployment", "ReplicaSet"): (_selects,),
    ("CronJob", "Job"): (_is_scheduled,),
    ("Service", "EndpointSlice"): (_is_slice,),
    ("Pod", "PersistentVolumeClaim"): (_is_ephemeral_claim,),
}
"""What the controllers of Kubernetes create, by the kinds of owner and object, and what holds of it."""


def is_generated(obj: Obj, owners: Owners) -> bool:
    """Whether a controller created the object for an owner that exists."""
    metadata, kind = obj["metadata"], obj["kind"]
    if kind == "ConfigMap" and metadata["name"] == "kube-root-ca.crt":
        return True
    if kind == "Secret" and obj.get("type") == "kubernetes.io/service-account-token":
        return (obj.get("data") or {}).keys() <= _TOKEN_ENTRIES
    return any(_makes(owner, obj) for owner in _live_owners(obj, owners)) or made_by_operator(obj, owners)


def made_by_operator(obj: Obj, owners: Owners) -> bool:
    """Whether a custom resource owns the object; to define one is beyond an agent's rights."""
    return obj["kind"] in _MADE_BY_OPERATORS and any(
        "." in group and not group.endswith(".k8s.io") for group, _ in _live_owners(obj, owners)
    )


def is_garbage(obj: Obj, owners: Owners) -> bool:
    """Whether the garbage collector is about to delete the object, because the controller that made it is gone.

    Who deletes a Deployment and is done at once has deleted its pods as well, even if they still run. Only owners of
    kinds that every cluster serves count: a collector leaves objects alone whose owner's kind it does not know.
    """
    return any(
        uid not in owners and owner in _COLLECTED and (owner[1], obj["kind"]) in _RULES
        for uid, owner in _controllers(obj)
    )


def _controllers(obj: Obj) -> Iterator[tuple[str, tuple[str, str]]]:
    """UID, group and kind of the controlling owners, as the references say."""
    for owner in obj["metadata"].get("ownerReferences") or ():
        if owner.get("controller"):
            group = str(owner.get("apiVersion", "")).rpartition("/")[0]
            yield str(owner.get("uid")), (group, str(owner.get("kind")))


def _live_owners(obj: Obj, owners: Owners) -> Iterator[tuple[str, Obj]]:
    """The controlling owners that exist, where a reference describes them rightly."""
    for uid, (group, kind) in _controllers(obj):
        found = owners.get(uid)
        if found is not None and (found[0], found[1]["kind"]) == (group, kind):
            namespace = found[1]["metadata"].get("namespace", "")
            if namespace in ("", obj["metadata"].get("namespace", "")):
                yield found


def _makes(owner: tuple[str, Obj], obj: Obj) -> bool:
    group, found = owner
    rules = _RULES.get((found["kind"], obj["kind"]))
    return rules is not None and group in ("", "apps", "batch") and all(rule(found, obj) for rule in rules)
