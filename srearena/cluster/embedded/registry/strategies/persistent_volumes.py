"""Volumes and the claims on them. Both are protected by a finalizer while they are in use."""

from __future__ import annotations

from srearena.cluster.embedded.objects import Obj, annotations_of, dig
from srearena.cluster.embedded.quantity import Quantity, parse
from srearena.cluster.embedded.registry.errors import FieldError
from srearena.cluster.embedded.registry.strategies import checks
from srearena.cluster.embedded.registry.strategies.amounts import reading, settle
from srearena.cluster.embedded.registry.strategies.checks import Problems
from srearena.cluster.embedded.registry.strategies.claims import VOLUME_MODES, access_modes, claim_spec
from srearena.cluster.embedded.registry.strategies.go_shapes import diff, same, shape_of
from srearena.cluster.embedded.registry.strategies.parts import fill, fill_empty, items, part
from srearena.cluster.embedded.registry.strategies.pod_defaults import default_claim_spec, default_volume_source
from srearena.cluster.embedded.registry.strategies.pod_scheduling import node_selector
from srearena.cluster.embedded.registry.strategies.pod_warnings import claim_warnings
from srearena.cluster.embedded.registry.strategies.volumes import MORE_THAN_ONE, check_source
from srearena.cluster.embedded.registry.strategy import Strategy, WriteContext

VOLUME_PROTECTION = "kubernetes.io/pv-protection"
CLAIM_PROTECTION = "kubernetes.io/pvc-protection"
RECLAIM_POLICIES = ("Delete", "Recycle", "Retain")
BETA_CLASS = "volume.beta.kubernetes.io/storage-class"
_BETA_CLASS_RETIRED = 'deprecated since v1.8; use "storageClassName" attribute instead'
_SOURCES_OF_CLAIMS = (("", "PersistentVolumeClaim"), ("snapshot.storage.k8s.io", "VolumeSnapshot"))
_CLAIM_FIXED = (
    "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"
)
_NOT_SOURCES = frozenset(
    {
        "accessModes",
        "capacity",
        "claimRef",
        "mountOptions",
        "nodeAffinity",
        "persistentVolumeReclaimPolicy",
        "storageClassName",
        "volumeAttributesClassName",
        "volumeMode",
    }
)


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
    _drop_unusable_sources(obj["spec"])
    _normalise_sources(obj["spec"])
    _protect(obj, CLAIM_PROTECTION)


def _prepare_claim_update(new: Obj, old: Obj, context: WriteContext) -> None:
    _normalise_sources(new["spec"])


def _drop_unusable_sources(spec: Obj) -> None:
    """Claims and snapshots are what a volume can be filled from; anything else is left out silently."""
    source, reference = spec.get("dataSource"), spec.get("dataSourceRef")
    if source is not None and (source.get("apiGroup") or "", source.get("kind")) not in _SOURCES_OF_CLAIMS:
        del spec["dataSource"]
    if reference is not None and reference.get("namespace"):
        del spec["dataSourceRef"]


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


def _validate_volume(obj: Obj) -> Problems:
    problems: Problems = []
    spec = obj.get("spec") or {}
    checks.required(problems, "spec.accessModes", spec.get("accessModes"))
    access_modes(problems, "spec.accessModes", items(spec, "accessModes"))
    _capacity(problems, spec.get("capacity"))
    policy = spec.get("persistentVolumeReclaimPolicy")
    if policy:
        checks.one_of(problems, "spec.persistentVolumeReclaimPolicy", policy, RECLAIM_POLICIES)
    affinity = spec.get("nodeAffinity")
    if affinity is not None:
        if affinity.get("required") is not None:
            node_selector(problems, "spec.nodeAffinity.required", affinity["required"])
        else:
            text = "must specify required node constraints"
            problems.append(FieldError.required("spec.nodeAffinity.required", text))
    _volume_source(problems, spec)
    if spec.get("storageClassName"):
        checks.subdomain(problems, "spec.storageClassName", spec["storageClassName"])
    if spec.get("volumeMode") is not None:
        checks.one_of(problems, "spec.volumeMode", spec["volumeMode"], VOLUME_MODES)
    return problems


def _capacity(problems: Problems, capacity: Obj | None) -> None:
    checks.required(problems, "spec.capacity", capacity)
    if set(capacity or ()) != {"storage"}:
        problems.append(FieldError.not_supported("spec.capacity", checks.in_order(capacity), ("storage",)))
    for name, text in (capacity or {}).items():
        amount = parse(text)
        if amount.value() < 0:
            text_of = "must be a valid resource quantity"
            problems.append(FieldError.invalid(f"spec.capacity[{name}]", amount.value(), text_of))
        if amount.nano <= 0:
            problems.append(FieldError.invalid(f"spec.capacity[{name}]", text, checks.NOT_POSITIVE))


def _volume_source(problems: Problems, spec: Obj) -> None:
    found = [key for key in spec if key not in _NOT_SOURCES and spec[key] is not None]
    if not found:
        problems.append(FieldError.required("spec", "must specify a volume type"))
        return
    for key in found[1:]:
        problems.append(FieldError.forbidden(f"spec.{key}", MORE_THAN_ONE))
    kind = found[0]
    check_source(problems, "spec", kind, spec[kind])
    if kind == "csi" and not spec[kind].get("volumeHandle"):
        problems.append(FieldError.required("spec.csi.volumeHandle"))
    if kind == "local" and spec.get("nodeAffinity") is None:
        problems.append(FieldError.required("spec.nodeAffinity", "Local volume requires node affinity"))
    whole_node = kind == "hostPath" and not (spec[kind].get("path") or "").strip("/")
    if whole_node and spec.get("persistentVolumeReclaimPolicy") == "Recycle":
        text = "may not be 'recycle' for a hostPath mount of '/'"
        problems.append(FieldError.forbidden("spec.persistentVolumeReclaimPolicy", text))


def _validate_volume_update(new: Obj, old: Obj) -> Problems:
    problems: Problems = []
    spec, before = new.get("spec") or {}, old.get("spec") or {}
    sources = [{k: v for k, v in holder.items() if k not in _NOT_SOURCES} for holder in (spec, before)]
    if not same("PersistentVolumeSource", sources[0], sources[1]):
        changed = diff("PersistentVolumeSource", sources[1], sources[0])
        text = f"spec.persistentvolumesource is immutable after creation\n{changed}"
        problems.append(FieldError.forbidden("spec.persistentvolumesource", text))
    checks.immutable(problems, "volumeMode", spec.get("volumeMode"), before.get("volumeMode"))
    if before.get("nodeAffinity") is not None and spec.get("nodeAffinity") != before["nodeAffinity"]:
        shown = {"Required": shape_of("NodeSelector", (spec.get("nodeAffinity") or {}).get("required") or {})}
        text = f"{checks.IMMUTABLE}, except for updating from beta label to GA"
        problems.append(FieldError.invalid("nodeAffinity", shown if spec.get("nodeAffinity") else None, text))
    return problems


def _validate_claim(obj: Obj) -> Problems:
    problems: Problems = []
    claim_spec(problems, "spec", obj.get("spec") or {})
    return problems


def _validate_claim_update(new: Obj, old: Obj) -> Problems:
    problems: Problems = []
    spec, before = new.get("spec") or {}, old.get("spec") or {}
    bound = dig(new, "status", "phase") == "Bound"
    now, was = dict(spec), dict(before)
    if not was.get("volumeName"):
        was.pop("volumeName", None)
        now.pop("volumeName", None)
    if was.get("storageClassName") is None:
        now.pop("storageClassName", None)
        was.pop("storageClassName", None)
    if bound:
        now["resources"] = _with_storage_of(now.get("resources") or {}, before.get("resources") or {})
        now["volumeAttributesClassName"] = was.get("volumeAttributesClassName")
    if not same("PersistentVolumeClaimSpec", now, was):
        changed = diff("PersistentVolumeClaimSpec", was, now)
        problems.append(FieldError.forbidden("spec", f"{_CLAIM_FIXED}\n{changed}"))
    wanted, earlier_size = _storage(spec), _storage(before)
    if wanted < earlier_size and wanted <= parse(dig(old, "status", "capacity", "storage")):
        text = "field can not be less than status.capacity"
        problems.append(FieldError.forbidden("spec.resources.requests.storage", text))
    checks.immutable(problems, "volumeMode", spec.get("volumeMode"), before.get("volumeMode"))
    return problems


def _storage(spec: Obj) -> Quantity:
    return parse(dig(spec, "resources", "requests", "storage"))


def _with_storage_of(resources: Obj, before: Obj) -> Obj:
    """The new resources asking for as much storage as before: growing a bound claim is no change of its spec."""
    if not resources.get("requests"):
        return resources
    storage = (before.get("requests") or {}).get("storage")
    return {**resources, "requests": {**resources["requests"], "storage": storage}}


def _volume_warnings(obj: Obj) -> list[str]:
    found: list[str] = []
    if BETA_CLASS in annotations_of(obj):
        found.append(f"metadata.annotations[{BETA_CLASS}]: {_BETA_CLASS_RETIRED}")
    if (obj.get("spec") or {}).get("persistentVolumeReclaimPolicy") == "Recycle":
        text = "Instead, the recommended approach is to use dynamic provisioning."
        found.append(f"spec.persistentVolumeReclaimPolicy: The Recycle reclaim policy is deprecated. {text}")
    return found


def _claim_warnings(obj: Obj) -> list[str]:
    found = claim_warnings(obj.get("spec") or {}, "spec")
    if BETA_CLASS in annotations_of(obj):
        return [f"metadata.annotations[{BETA_CLASS}]: {_BETA_CLASS_RETIRED}", *found]
    return found


STRATEGIES = {
    "persistentvolumes": Strategy(
        default=reading(_default_volume),
        prepare_create=_prepare_volume,
        prepare_status=_prepare_volume_status,
        validate=_validate_volume,
        validate_update=_validate_volume_update,
        warnings=_volume_warnings,
    ),
    "persistentvolumeclaims": Strategy(
        default=reading(_default_claim),
        prepare_create=_prepare_claim,
        prepare_update=_prepare_claim_update,
        validate=_validate_claim,
        validate_update=_validate_claim_update,
        warnings=_claim_warnings,
    ),
}
