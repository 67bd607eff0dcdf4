"""The spec of a PersistentVolumeClaim, in a claim of its own or in a template for one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from srearena.cluster.embedded.objects import Obj
from srearena.cluster.embedded.quantity import parse
from srearena.cluster.embedded.registry import names
from srearena.cluster.embedded.registry.errors import FieldError
from srearena.cluster.embedded.registry.strategies import checks
from srearena.cluster.embedded.registry.strategies.checks import Problems
from srearena.cluster.embedded.registry.strategies.parts import items

ACCESS_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
VOLUME_MODES = ("Block", "Filesystem")
_EXCLUSIVE = "ReadWriteOncePod"
_TEMPLATE_METADATA = ("labels", "annotations")


def access_modes(problems: Problems, path: str, modes: list[str]) -> None:
    for mode in modes:
        checks.one_of(problems, path, mode, ACCESS_MODES)
    if _EXCLUSIVE in modes and any(mode in ACCESS_MODES and mode != _EXCLUSIVE for mode in modes):
        problems.append(FieldError.forbidden(path, "may not use ReadWriteOncePod with other access modes"))


def claim_spec(problems: Problems, path: str, spec: Obj) -> None:
    modes = items(spec, "accessModes")
    if not modes:
        problems.append(FieldError.required(f"{path}.accessModes", "at least 1 access mode is required"))
    checks.selector(problems, f"{path}.selector", spec.get("selector"))
    access_modes(problems, f"{path}.accessModes", modes)
    storage = ((spec.get("resources") or {}).get("requests") or {}).get("storage")
    if storage is None:
        problems.append(FieldError.required(f"{path}.resources[storage]"))
    elif parse(storage).nano <= 0:
        problems.append(FieldError.invalid(f"{path}.resources[storage]", storage, checks.NOT_POSITIVE))
    if spec.get("storageClassName"):
        checks.subdomain(problems, f"{path}.storageClassName", spec["storageClassName"])
    if spec.get("volumeMode") is not None:
        checks.one_of(problems, f"{path}.volumeMode", spec["volumeMode"], VOLUME_MODES)
    source, reference = spec.get("dataSource"), spec.get("dataSourceRef")
    for key, value in (("dataSource", source), ("dataSourceRef", reference)):
        if value is not None:
            _data_source(problems, f"{path}.{key}", value)
    if source is not None and reference is not None:
        if reference.get("namespace"):
            text = "may not be specified when dataSourceRef.namespace is specified"
            problems.append(FieldError.invalid(path, {}, text))
        elif any((source.get(key) or "") != (reference.get(key) or "") for key in ("apiGroup", "kind", "name")):
            problems.append(FieldError.invalid(path, {}, "must match dataSourceRef"))
    if spec.get("volumeAttributesClassName"):
        checks.subdomain(problems, f"{path}.volumeAttributesClassName", spec["volumeAttributesClassName"])


def _data_source(problems: Problems, path: str, source: Mapping[str, Any]) -> None:
    group, kind = source.get("apiGroup") or "", source.get("kind") or ""
    checks.required(problems, f"{path}.name", source.get("name"))
    checks.required(problems, f"{path}.kind", kind)
    if not group and kind != "PersistentVolumeClaim":
        text = "must be 'PersistentVolumeClaim' when referencing the default apiGroup"
        problems.append(FieldError.invalid(path, kind, text))
    if group:
        checks.subdomain(problems, f"{path}.apiGroup", group)
    if source.get("namespace"):
        checks.label(problems, f"{path}.namespace", source["namespace"])


def claim_template(problems: Problems, path: str, template: Obj) -> None:
    """The template inside an ephemeral volume: its metadata may hold labels and annotations, nothing else."""
    metadata = template.get("metadata") or {}
    problems += names.annotations_errors(metadata.get("annotations"), f"{path}.metadata.annotations")
    problems += names.labels_errors(metadata.get("labels"), f"{path}.metadata.labels")
    for key, value in metadata.items():
        if value and key not in _TEMPLATE_METADATA:
            problems.append(FieldError.forbidden(f"{path}.metadata.{key}", "cannot be set"))
    claim_spec(problems, f"{path}.spec", template.get("spec") or {})
