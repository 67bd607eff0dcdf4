"""The state of an application that is stored with a result, so that answers can be graded again later."""

from __future__ import annotations

from srearena.service.kubernetes import Kubernetes, Obj

STATE = "state.json"
_RESOURCES = ("deployments", "statefulsets", "daemonsets", "replicasets", "services", "pods")


def capture_state(api: Kubernetes, namespaces: tuple[str, ...]) -> dict[str, list[Obj]]:
    """Capture which names belong together: labels, selectors and owners of the objects."""
    return {
        resource: [_summary(obj) for namespace in namespaces for obj in api.list(resource, namespace)]
        for resource in _RESOURCES
    }


def _summary(obj: Obj) -> Obj:
    metadata, spec = obj["metadata"], obj.get("spec") or {}
    summary: Obj = {
        "metadata": {
            key: metadata[key] for key in ("name", "namespace", "labels", "ownerReferences") if key in metadata
        },
        "spec": {},
    }
    if "template" in spec:
        summary["spec"]["template"] = {"metadata": {"labels": spec["template"].get("metadata", {}).get("labels") or {}}}
    if obj.get("kind") == "Service":
        summary["spec"]["selector"] = spec.get("selector") or {}
    return summary
