"""What a CustomResourceDefinition says about one served version, as reading needs it: columns and selectable fields."""

from __future__ import annotations

from typing import Any

from srearena.cluster.embedded.objects import Obj, dig
from srearena.cluster.embedded.registry.field_selectors import FieldLabels, custom_field_labels, field_labels
from srearena.cluster.embedded.registry.resources import Resource
from srearena.cluster.embedded.store import Store

DEFINITIONS = "customresourcedefinitions.apiextensions.k8s.io"


def version_of(store: Store, row: Resource) -> Obj:
    """The entry of `spec.versions` that this row serves; empty for built-in resources."""
    if not row.custom:
        return {}
    definition = store.get(DEFINITIONS, "", row.group_resource) or {}
    versions: list[Any] = dig(definition, "spec", "versions", default=[])
    return next((entry for entry in versions if isinstance(entry, dict) and entry.get("name") == row.version), {})


def printer_columns(store: Store, row: Resource) -> list[Obj] | None:
    """The columns that the definition asks for; None for built-in resources, which have their own."""
    if not row.custom:
        return None
    return list(version_of(store, row).get("additionalPrinterColumns") or ())


def selectable(store: Store, row: Resource) -> FieldLabels:
    """The fields that objects of this row can be selected by."""
    if not row.custom:
        return field_labels(row.group, row.kind)
    paths = [field.get("jsonPath", "") for field in version_of(store, row).get("selectableFields") or ()]
    return custom_field_labels(paths, namespaced=row.namespaced)
