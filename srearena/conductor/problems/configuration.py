"""Missing configuration and storage that workloads mount."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from srearena.conductor.oracles.checks import Intent
from srearena.conductor.oracles.mitigation import MitigationOracle, usual_checks
from srearena.conductor.problems.injected import UNDO, InjectedProblem
from srearena.conductor.problems.metadata import Level, SystemLevel
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


class LostData(InjectedProblem):
    """The stored data is lost; the services initialize an empty database when they start."""

    level: Level = "correlated"
    system_level: SystemLevel | None = "Virtualization"

    def __init__(self, app: str, service: str | Sequence[str], **options: Any) -> None:
        super().__init__(app, service, **options)
        usual = [check for check in usual_checks() if check.name != Intent.name]
        self.mitigation_oracle = MitigationOracle(self, checks=[Intent(keeps_claims=False), *usual])

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
    stages = ("detection", "localization", "analysis", "mitigation")
    fault = "volumes_lost"
    fault_type = "Operation Error"
    explanation = "The volumes behind the claims of {service} were deleted, and their pods, started anew, find no node."


@problem("silent_data_corruption", app="hotel_reservation", service="mongodb-rate")
class SilentDataCorruption(LostData):
    """Runs only on the embedded cluster, whose disks can return wrong data."""

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
