"""Missing configuration and storage that workloads mount."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import ClassVar

from srearena.conductor.problems.injected import CONTAINER, POD, RESTORE, InjectedProblem
from srearena.conductor.problems.metadata import Entity, Level, Origin, SystemLevel
from srearena.conductor.problems.registry import problem
from srearena.conductor.problems.targets import components, stores
from srearena.conductor.problems.variation import Choice

_MONGOS = tuple(f"mongodb-{name}" for name in ("geo", "profile", "rate", "recommendation", "reservation", "user"))

_SCRIPTED = {
    "hotel_reservation": ("mongodb-geo", "mongodb-rate"),
    "social_network": (
        "media-mongodb",
        "post-storage-mongodb",
        "social-graph-mongodb",
        "url-shorten-mongodb",
        "user-mongodb",
        "user-timeline-mongodb",
    ),
}
"""Databases that mount a config map: their users, or their configuration."""


def _mounted(store: str) -> str:
    """The config map of a database: Hotel Reservation names it after the script in it."""
    return f"mongo-{store.removeprefix('mongodb-')}-script" if store.startswith("mongodb-") else store


@problem(
    "missing_configmap_hotel_reservation", app="hotel_reservation", service="mongodb-geo", config_map="mongo-geo-script"
)
@problem("missing_configmap_social_network", app="social_network", service="media-mongodb", config_map="media-mongodb")
class MissingConfigMap(InjectedProblem):
    varies: ClassVar[Mapping[str, Choice]] = {
        "service": lambda arguments: _SCRIPTED.get(arguments["app"], ()),
        "config_map": lambda arguments: [_mounted(arguments["service"])],
    }
    family = "missing_configmap"
    fault = "missing_configmap"
    root_kind = "ConfigMap"
    root_name = "{config_map}"
    fault_type = "Operation Error"
    explanation = "The config map {config_map}, which {service} mounts, was deleted."

    def _remedy(self) -> str:
        """The config map of the application's manifests."""
        name = self.options["config_map"]
        for manifest in self.app.manifests:
            if manifest.kind == "ConfigMap" and manifest.name == name:
                document = {**manifest.obj, "metadata": {**manifest.obj["metadata"], "namespace": self.namespace}}
                return f"kubectl apply -f - <<'END'\n{json.dumps(document, indent=1)}\nEND"
        return ""


@problem("pvc_claim_mismatch", app="hotel_reservation", service=_MONGOS)
class PvcClaimMismatch(InjectedProblem):
    family = "pvc_claim_mismatch"
    level = "correlated"
    fault = "pvc_claim_mismatch"
    explanation = "{service} mount claims that do not exist."
    remedy = RESTORE
    restores = (f"{POD}/volumes",)


@problem("duplicate_pvc_mounts_astronomy_shop", app="astronomy_shop", service="frontend")
@problem("duplicate_pvc_mounts_hotel_reservation", app="hotel_reservation", service="frontend")
@problem("duplicate_pvc_mounts_social_network", app="social_network", service="jaeger")
class DuplicatePvcMounts(InjectedProblem):
    varies: ClassVar[Mapping[str, Choice]] = {"service": components}
    family = "duplicate_pvc_mounts"
    fault = "duplicate_pvc_mounts"
    contributing = ("PersistentVolumeClaim/{service}-cache",)
    explanation = (
        "Two replicas of {service}, kept on different nodes, share a volume that one node at a time can mount."
    )
    remedy = RESTORE
    restores = (f"{POD}/affinity", f"{POD}/volumes", f"{CONTAINER}/volumeMounts", "/spec/replicas")


class LostData(InjectedProblem):
    """The stored data is lost; the services initialize an empty database when they start."""

    level: Level = "correlated"
    system_level: SystemLevel | None = "Virtualization"
    data_is_lost = True

    @property
    def origins(self) -> Sequence[Origin]:
        """Per database: its volume, which has the name that the cluster gave it, its claim, and the server."""
        return tuple(self._lost(service) for service in self.services)

    def _lost(self, service: str) -> Origin:
        claim = Entity("PersistentVolumeClaim", f"{service.removeprefix('mongodb-')}-pvc", self.namespace)
        server = Entity("Deployment", service, self.namespace)
        healthy = self.baseline.get("persistentvolumeclaims", claim.name, self.namespace) if self.baseline else None
        volume = Entity("PersistentVolume", healthy["spec"]["volumeName"]) if healthy else claim
        return Origin((volume,), (claim, server))

    def _remedy(self) -> str:
        """New claims in place of the lost ones."""
        clients = [name.removeprefix("mongodb-") for name in self.services]
        claims = [
            one.obj
            for one in self.app.manifests
            if one.kind == "PersistentVolumeClaim" and one.name.removesuffix("-pvc") in clients
        ]
        documents = [{**one, "metadata": {**one["metadata"], "namespace": self.namespace}} for one in claims]
        listed = {"apiVersion": "v1", "kind": "List", "items": documents}
        names, there = " ".join(one["metadata"]["name"] for one in claims), f"kubectl -n {self.namespace}"
        return "\n".join(
            [
                f"{there} scale deployment {' '.join(self.services)} --replicas=0",
                f"{there} delete pvc {names}",
                f"kubectl apply -f - <<'END'\n{json.dumps(listed)}\nEND",
                f"{there} scale deployment {' '.join(self.services)} --replicas=1",
                f"{there} wait deployment {' '.join(self.services)} --for=condition=Available --timeout=90s",
                f"{there} rollout restart deployment {' '.join(clients)}",
            ]
        )


@problem("redeploy_without_PV", app="hotel_reservation", service=_MONGOS)
class RedeployWithoutVolumes(LostData):
    family = "redeploy_without_PV"
    fault = "volumes_lost"
    fault_type = "Operation Error"
    explanation = "The volumes behind the claims of {service} were deleted, and their pods, started anew, find no node."


@problem("silent_data_corruption", app="hotel_reservation", service="mongodb-rate")
class SilentDataCorruption(LostData):
    """Runs only on the embedded cluster, whose disks can return wrong data."""

    varies: ClassVar[Mapping[str, Choice]] = {"service": stores}
    family = "silent_data_corruption"
    level = "hardware"
    system_level = None
    difficulty = "hard"
    fault = "data_corruption"
    fault_type = "Network/Storage Issue"
    runs_on = ("embedded",)
    explanation = (
        "The disk under {service} has returned other bytes than were written: the database ends with a checksum error "
        "whenever it starts, and what it held is lost."
    )
