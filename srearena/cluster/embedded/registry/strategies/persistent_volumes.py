"""Volumes and the claims on them. Both are protected by a finalizer for as long as somebody uses them."""

from __future__ import annotations

from srearena.cluster.embedded.objects import Obj
from srearena.cluster.embedded.registry.strategies.amounts import reading, settle
from srearena.cluster.embedded.registry.strategies.parts import fill, fill_empty, items, part
from srearena.cluster.embedded.registry.strategies.pod_defaults import default_claim_spec, default_volume_source
from srearena.cluster.embedded.registry.strategy import Strategy, WriteContext

VOLUME_PROTECTION = "kubernetes.io/pv-protection"
CLAIM_PROTECTION = "kubernetes.io/pvc-protection"


def _default_volume(obj: Obj) -> None:
    spec = part(obj, "spec")
    settle(spec, "capacity")
    fill_empty(spec, {"persistentVolumeReclaimPolicy": "Retain"})
    fill(spec, {"volumeMode": "Filesystem"})
    default_volume_source(spec)
    fill_empty(part(obj, "status"), {"phase": "Pending"})


def _prepare_volume(obj: Obj, context: WriteContext) -> None:
    obj["status"] = {"phase": "Pending", "lastPhaseTransitionTime": context.clock.timestamp()}
    _protect(obj, VOLUME_PROTECTION)


def _prepare_volume_status(new: Obj, old: Obj, context: WriteContext) -> None:
    """The moment of the last change of phase is kept by the server unless the writer says it."""
    status, before = new.get("status") or {}, old.get("status") or {}
    moment, last = status.get("lastPhaseTransitionTime"), before.get("lastPhaseTransitionTime")
    if status.get("phase") == before.get("phase"):
        if moment is None and last is not None:
            new["status"] = {**status, "lastPhaseTransitionTime": last}
    elif moment is None or moment == last:
        new["status"] = {**status, "lastPhaseTransitionTime": context.clock.timestamp()}


def _default_claim(obj: Obj) -> None:
    default_claim_spec(part(obj, "spec"))
    status = part(obj, "status")
    fill_empty(status, {"phase": "Pending"})
    settle(status, "capacity", "allocatedResources")


def _prepare_claim(obj: Obj, context: WriteContext) -> None:
    obj["status"] = {"phase": "Pending"}
    _normalise_sources(obj["spec"])
    _protect(obj, CLAIM_PROTECTION)


def _prepare_claim_update(new: Obj, old: Obj, context: WriteContext) -> None:
    _normalise_sources(new["spec"])


def _normalise_sources(spec: Obj) -> None:
    """`dataSource` and `dataSourceRef` say the same where only one of them was written."""
    source, reference = spec.get("dataSource"), spec.get("dataSourceRef")
    if source is not None and reference is None:
        spec["dataSourceRef"] = dict(source)
    elif reference is not None and source is None and not reference.get("namespace"):
        spec["dataSource"] = dict(reference)


def _protect(obj: Obj, finalizer: str) -> None:
    present = items(obj["metadata"], "finalizers")
    if finalizer not in present:
        obj["metadata"]["finalizers"] = [*present, finalizer]


STRATEGIES = {
    "persistentvolumes": Strategy(
        default=reading(_default_volume), prepare_create=_prepare_volume, prepare_status=_prepare_volume_status
    ),
    "persistentvolumeclaims": Strategy(
        default=reading(_default_claim), prepare_create=_prepare_claim, prepare_update=_prepare_claim_update
    ),
}
