"""What is kept of a cluster for a later grading: which names belong together. Small, and enough for words."""

from __future__ import annotations

from srearena.service.kubernetes import Kubernetes, Obj

STATE = "state.json"
_KEPT = ("deployments", "statefulsets", "daemonsets", "replicasets", "services", "pods")


def kept_state(api: Kubernetes, namespaces: tuple[str, ...]) -> dict[str, list[Obj]]:
    """What a later grading needs to know of a cluster: which names belong together."""
    return {
        resource: [_essence(obj) for namespace in namespaces for obj in api.list(resource, namespace)]
        for resource in _KEPT
    }


def _essence(obj: Obj) -> Obj:
    metadata, spec = obj["metadata"], obj.get("spec") or {}
    kept: Obj = {
        "metadata": {
            key: metadata[key] for key in ("name", "namespace", "labels", "ownerReferences") if key in metadata
        },
        "spec": {},
    }
    if "template" in spec:
        kept["spec"]["template"] = {"metadata": {"labels": spec["template"].get("metadata", {}).get("labels") or {}}}
    if obj.get("kind") == "Service":
        kept["spec"]["selector"] = spec.get("selector") or {}
    return kept
