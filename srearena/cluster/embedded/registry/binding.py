"""Binding a pod to a node: the one way spec.nodeName of an existing pod is ever set."""

from __future__ import annotations

from srearena.cluster.embedded.objects import Obj, annotations_of, dig, is_terminating, meta, with_condition
from srearena.cluster.embedded.registry.errors import Conflict, NotFound
from srearena.cluster.embedded.registry.registry import Registry


def bind(registry: Registry, namespace: str, name: str, node: str, binding: Obj | None = None) -> Obj:
    """Assign the pod; refused when it is going away or has a node already."""
    pod = registry.store.get("pods", namespace, name)
    if pod is None:
        raise NotFound("pods", name)
    wanted_uid = dig(binding, "metadata", "uid")
    if wanted_uid and wanted_uid != meta(pod)["uid"]:
        why = f"Precondition failed: UID in precondition: {wanted_uid}, UID in object meta: {meta(pod)['uid']}"
        raise Conflict("pods/binding", name, why)
    if is_terminating(pod):
        raise Conflict("pods/binding", name, f"pod {name} is being deleted, cannot be assigned to a host")
    assigned = dig(pod, "spec", "nodeName")
    if assigned:
        raise Conflict("pods/binding", name, f'pod {name} is already assigned to node "{assigned}"')
    if dig(pod, "spec", "schedulingGates"):
        raise Conflict("pods/binding", name, f"pod {name} has non-empty .spec.schedulingGates")
    now = registry.clock.timestamp()
    status = pod.get("status") or {}
    scheduled = {"type": "PodScheduled", "status": "True", "lastProbeTime": None}
    kept = [c for c in status.get("conditions") or () if c.get("type") != "PodScheduled"]
    conditions = [*kept, *with_condition((), scheduled, now)]
    metadata = dict(meta(pod))
    if binding and annotations_of(binding):
        metadata["annotations"] = {**annotations_of(pod), **annotations_of(binding)}
    bound = {
        **pod,
        "metadata": metadata,
        "spec": {**pod["spec"], "nodeName": node},
        "status": {**status, "conditions": conditions},
    }
    return registry.store.put("pods", bound)
