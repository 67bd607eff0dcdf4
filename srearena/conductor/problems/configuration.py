"""Configuration and storage that workloads mount, and that is not there."""

from __future__ import annotations

from srearena.conductor.problems.injected import UNDO, InjectedProblem
from srearena.conductor.problems.registry import problem

_MONGOS = tuple(f"mongodb-{name}" for name in ("geo", "profile", "rate", "recommendation", "reservation", "user"))


@problem(
    "missing_configmap_hotel_reservation", app="hotel_reservation", service="mongodb-geo", config_map="mongo-geo-script"
)
@problem("missing_configmap_social_network", app="social_network", service="media-mongodb", config_map="media-mongodb")
class MissingConfigMap(InjectedProblem):
    family = "missing_configmap"
    fault = "missing_configmap"
    fault_type = "Operation Error"
    explanation = "The config map {config_map}, which {service} mounts, was deleted."

    def _remedy(self) -> str:
        """The config map as the application's manifests have it."""
        name = self.options["config_map"]
        for manifest in self.app.manifests:
            if manifest.kind == "ConfigMap" and manifest.name == name:
                import json

                document = {**manifest.obj, "metadata": {**manifest.obj["metadata"], "namespace": self.namespace}}
                return f"kubectl apply -f - <<'END'\n{json.dumps(document, indent=1)}\nEND"
        return ""


@problem("pvc_claim_mismatch", app="hotel_reservation", service=_MONGOS)
class PvcClaimMismatch(InjectedProblem):
    family = "pvc_claim_mismatch"
    level = "correlated"
    system_level = "Virtualization"
    fault = "pvc_claim_mismatch"
    explanation = "{service} mount claims that do not exist."
    remedy = UNDO


@problem("duplicate_pvc_mounts_astronomy_shop", app="astronomy_shop", service="frontend")
@problem("duplicate_pvc_mounts_hotel_reservation", app="hotel_reservation", service="frontend")
@problem("duplicate_pvc_mounts_social_network", app="social_network", service="jaeger")
class DuplicatePvcMounts(InjectedProblem):
    family = "duplicate_pvc_mounts"
    fault = "duplicate_pvc_mounts"
    explanation = (
        "Two replicas of {service}, kept on different nodes, share a volume that one node at a time can mount."
    )
    remedy = f"{UNDO}\nkubectl -n {{ns}} scale deployment {{service}} --replicas=1"
