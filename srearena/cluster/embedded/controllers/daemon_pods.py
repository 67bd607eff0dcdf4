"""The pods of a DaemonSet: eligible nodes, node affinity and tolerations. Pure functions.

A daemon pod is created for one node and scheduled only there; it tolerates most node conditions.
"""

from __future__ import annotations

from srearena.cluster.embedded.controllers.pod_sets import pod_from_template
from srearena.cluster.embedded.controllers.revisions import GENERATION_LABEL, HASH_LABEL
from srearena.cluster.embedded.objects import Obj, annotations_of, copy_of, dig, labels_of, name_of
from srearena.cluster.embedded.registry.placement import matches_node_selector, untolerated_taint

TEMPLATE_GENERATION = "deprecated.daemonset.template.generation"
_TOLERATED = (
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
)
_TOLERATED_ON_HOST_NETWORK = (("node.kubernetes.io/network-unavailable", "NoSchedule"),)
_TERMS = ("affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms")


def placement(daemon: Obj, node: Obj) -> tuple[bool, bool]:
    """(whether the node should get a pod, whether a pod that is there may stay)"""
    spec = dig(daemon, "spec", "template", "spec", default={})
    probe: Obj = {"metadata": {}, "spec": {**spec, "tolerations": _tolerations(spec)}}
    pinned = spec.get("nodeName")
    if (pinned and pinned != name_of(node)) or not matches_node_selector(probe, node):
        return False, False
    if untolerated_taint(probe, node, ("NoExecute",)) is not None:
        return False, False
    return untolerated_taint(probe, node, ("NoSchedule",)) is None, True


def _tolerations(spec: Obj) -> list[Obj]:
    endured = _TOLERATED + (_TOLERATED_ON_HOST_NETWORK if spec.get("hostNetwork") else ())
    extra = [{"key": key, "operator": "Exists", "effect": effect} for key, effect in endured]
    known = spec.get("tolerations") or []
    return [*known, *(toleration for toleration in extra if toleration not in known)]


def pod_for(daemon: Obj, node: str, revision: Obj) -> Obj:
    pod = pod_from_template(daemon, daemon["spec"]["template"])
    spec = pod["spec"]
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
    affinity = copy_of(spec.get("affinity") or {})
    required = {"nodeSelectorTerms": [term]}
    affinity.setdefault("nodeAffinity", {})["requiredDuringSchedulingIgnoredDuringExecution"] = required
    spec["affinity"] = affinity
    spec["tolerations"] = _tolerations(spec)
    labels = pod["metadata"].setdefault("labels", {})
    labels[HASH_LABEL] = labels_of(revision)[HASH_LABEL]
    labels[GENERATION_LABEL] = annotations_of(daemon).get(TEMPLATE_GENERATION, "1")
    return pod


def target_of(pod: Obj) -> str:
    """The node a daemon pod is on or meant for."""
    assigned = dig(pod, "spec", "nodeName")
    if assigned:
        return str(assigned)
    for term in dig(pod, "spec", *_TERMS, default=()):
        for field in term.get("matchFields") or ():
            if field.get("key") == "metadata.name" and field.get("values"):
                return str(field["values"][0])
    return ""


def is_updated(pod: Obj, revision: Obj) -> bool:
    return labels_of(pod).get(HASH_LABEL) == labels_of(revision).get(HASH_LABEL)
