"""The storage group: classes, drivers, attachments, capacities."""

from __future__ import annotations

from srearena.cluster.embedded.objects import Obj
from srearena.cluster.embedded.registry.errors import FieldError
from srearena.cluster.embedded.registry.strategies import checks
from srearena.cluster.embedded.registry.strategies.amounts import reading, settle_one
from srearena.cluster.embedded.registry.strategies.checks import Problems
from srearena.cluster.embedded.registry.strategies.parts import fill, items, part
from srearena.cluster.embedded.registry.strategies.volumes import csi_driver_name
from srearena.cluster.embedded.registry.strategy import Strategy

_BINDING_MODES = ("Immediate", "WaitForFirstConsumer")
_MOST_PARAMETERS = 512
_CSI_DRIVER = {
    "attachRequired": True,
    "podInfoOnMount": False,
    "storageCapacity": False,
    "fsGroupPolicy": "ReadWriteOnceWithFSType",
    "requiresRepublish": False,
    "seLinuxMount": False,
}


def _default_class(obj: Obj) -> None:
    fill(obj, {"reclaimPolicy": "Delete", "volumeBindingMode": "Immediate"})


def _default_driver(obj: Obj) -> None:
    spec = part(obj, "spec")
    fill(spec, _CSI_DRIVER)
    if not spec.get("volumeLifecycleModes"):
        spec["volumeLifecycleModes"] = ["Persistent"]


def _default_capacity(obj: Obj) -> None:
    settle_one(obj, "capacity")
    settle_one(obj, "maximumVolumeSize")


def _default_attachment(obj: Obj) -> None:
    fill(part(obj, "status"), {"attached": False})


def _default_node(obj: Obj) -> None:
    part(obj, "spec").setdefault("drivers", None)


def _validate_class(obj: Obj) -> Problems:
    problems: Problems = []
    provisioner = obj.get("provisioner") or ""
    if checks.required(problems, "provisioner", provisioner):
        checks.qualified_name(problems, "provisioner", provisioner.lower())
    parameters = obj.get("parameters") or {}
    if len(parameters) > _MOST_PARAMETERS:
        problems.append(FieldError.too_long("parameters", _MOST_PARAMETERS))
    if "" in parameters:
        problems.append(FieldError.invalid("parameters", "", "field can not be empty."))
    policy = obj.get("reclaimPolicy")
    if policy:
        checks.one_of(problems, "reclaimPolicy", policy, ("Delete", "Retain"))
    checks.required_one_of(problems, "volumeBindingMode", obj.get("volumeBindingMode"), _BINDING_MODES)
    for index, term in enumerate(items(obj, "allowedTopologies")):
        for number, rule in enumerate(items(term, "matchLabelExpressions")):
            where = f"allowedTopologies[{index}].matchLabelExpressions[{number}]"
            values = items(rule, "values")
            checks.required(problems, f"{where}.values", values)
            seen: set[str] = set()
            for place, value in enumerate(values):
                checks.unique(problems, f"{where}.values[{place}]", value, seen)
            checks.qualified_name(problems, f"{where}.key", rule.get("key") or "")
    return problems


def _validate_class_update(new: Obj, old: Obj) -> Problems:
    problems: Problems = []
    for key in ("parameters", "provisioner", "reclaimPolicy"):
        if (new.get(key) or None) != (old.get(key) or None):
            problems.append(FieldError.forbidden(key, f"updates to {key} are forbidden."))
    checks.immutable(problems, "volumeBindingMode", new.get("volumeBindingMode"), old.get("volumeBindingMode"))
    return problems


def _validate_driver(obj: Obj) -> Problems:
    problems: Problems = []
    spec = obj.get("spec") or {}
    if spec.get("fsGroupPolicy") is not None:
        supported = ("File", "None", "ReadWriteOnceWithFSType")
        checks.one_of(problems, "spec.fsGroupPolicy", spec["fsGroupPolicy"], supported)
    seen: set[str] = set()
    for index, request in enumerate(items(spec, "tokenRequests")):
        where, seconds = f"spec.tokenRequests[{index}]", request.get("expirationSeconds")
        checks.unique(problems, f"{where}.audience", request.get("audience") or "", seen)
        if seconds is not None and seconds < 600:
            text = "may not specify a duration less than 10 minutes"
            problems.append(FieldError.invalid(f"{where}.expirationSeconds", seconds, text))
    for mode in items(spec, "volumeLifecycleModes"):
        checks.one_of(problems, "spec.volumeLifecycleModes", mode, ("Persistent", "Ephemeral"))
    return problems


def _validate_driver_update(new: Obj, old: Obj) -> Problems:
    problems: Problems = []
    spec, before = new.get("spec") or {}, old.get("spec") or {}
    # The first of the two paths is misspelt in the real server as well.
    checks.immutable(problems, "spec.attachedRequired", spec.get("attachRequired"), before.get("attachRequired"))
    key = "volumeLifecycleModes"
    checks.immutable(problems, f"spec.{key}", spec.get(key), before.get(key))
    return problems


def _validate_node(obj: Obj) -> Problems:
    problems: Problems = []
    seen: set[str] = set()
    for index, driver in enumerate(items(obj.get("spec"), "drivers")):
        path = f"spec.drivers[{index}]"
        csi_driver_name(problems, f"{path}.name", driver.get("name") or "")
        checks.required(problems, f"{path}.nodeID", driver.get("nodeID"))
        checks.nonnegative(problems, f"{path}.allocatable.count", (driver.get("allocatable") or {}).get("count"))
        checks.unique(problems, f"{path}.name", driver.get("name") or "", seen)
        keys: set[str] = set()
        for key in items(driver, "topologyKeys"):
            checks.unique(problems, path, key, keys)
            checks.qualified_name(problems, path, key)
    return problems


def _validate_attachment(obj: Obj) -> Problems:
    problems: Problems = []
    spec = obj.get("spec") or {}
    source = spec.get("source") or {}
    checks.required(problems, "spec.attacher", spec.get("attacher"))
    named, inline = source.get("persistentVolumeName"), source.get("inlineVolumeSpec")
    text = "must specify exactly one of inlineVolumeSpec and persistentVolumeName"
    if named is None and inline is None:
        problems.append(FieldError.required("spec.source", text))
    elif named is not None and inline is not None:
        problems.append(FieldError.forbidden("spec.source", text))
    elif named == "":
        text = "must specify non empty persistentVolumeName"
        problems.append(FieldError.required("spec.source.persistentVolumeName", text))
    checks.subdomain(problems, "spec.nodeName", spec.get("nodeName") or "")
    return problems


def _validate_attachment_update(new: Obj, old: Obj) -> Problems:
    problems: Problems = []
    checks.immutable(problems, "spec", new.get("spec"), old.get("spec"))
    return problems


def _validate_capacity_update(new: Obj, old: Obj) -> Problems:
    problems: Problems = []
    for key in ("nodeTopology", "storageClassName"):
        checks.immutable(problems, key, new.get(key), old.get(key))
    return problems


def _validate_attributes_class(obj: Obj) -> Problems:
    problems: Problems = []
    driver = obj.get("driverName") or ""
    if checks.required(problems, "driverName", driver):
        checks.qualified_name(problems, "driverName", driver.lower())
    text = "must contain at least one key/value pair"
    checks.required(problems, "parameters", obj.get("parameters"), text)
    return problems


def _validate_attributes_class_update(new: Obj, old: Obj) -> Problems:
    problems: Problems = []
    for key in ("driverName", "parameters"):
        if new.get(key) != old.get(key):
            problems.append(FieldError.forbidden(key, f"updates to {key} are forbidden."))
    return problems


STRATEGIES = {
    "storageclasses.storage.k8s.io": Strategy(
        default=_default_class, validate=_validate_class, validate_update=_validate_class_update
    ),
    "csidrivers.storage.k8s.io": Strategy(
        default=_default_driver, validate=_validate_driver, validate_update=_validate_driver_update
    ),
    "csinodes.storage.k8s.io": Strategy(default=_default_node, validate=_validate_node),
    "csistoragecapacities.storage.k8s.io": Strategy(
        default=reading(_default_capacity), validate_update=_validate_capacity_update
    ),
    "volumeattributesclasses.storage.k8s.io": Strategy(
        validate=_validate_attributes_class, validate_update=_validate_attributes_class_update
    ),
    "volumeattachments.storage.k8s.io": Strategy(
        default=_default_attachment, validate=_validate_attachment, validate_update=_validate_attachment_update
    ),
}
