"""Definitions as OpenAPI v3 wants them: built-in kinds from the packaged schemas, custom ones from their CRDs.

The packaged schemas are JSON Schema: null is spelled out as a type, references stand beside descriptions, and the
values of `kind` are enumerated. Here all of that is put back as the real server publishes it.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any, Final

from srearena.cluster.embedded.objects import Obj
from srearena.cluster.embedded.registry import schemas
from srearena.cluster.embedded.registry.resources import Resource

REFERENCE: Final = "#/components/schemas/"
META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1."
STATUS: Final = f"{META}Status"
DELETE_OPTIONS: Final = f"{META}DeleteOptions"
PATCH: Final = f"{META}Patch"
WATCH_EVENT: Final = f"{META}WatchEvent"
_PACKAGED_REFERENCE: Final = "#/$defs/"
_INT_OR_STRING: Final = "io.k8s.apimachinery.pkg.util.intstr.IntOrString"
_SPECIAL: Final[dict[str, Obj]] = {
    _INT_OR_STRING: {
        "description": "A whole number, or text such as a percentage or the name of a port.",
        "format": "int-or-string",
        "oneOf": [{"type": "integer"}, {"type": "string"}],
    },
    schemas.QUANTITY: {
        "description": "A fixed-point number with an optional suffix, such as 100m, 1.5Gi or 2e3.",
        "oneOf": [{"type": "string"}, {"type": "number"}],
    },
}
_USUAL: Final = "io.k8s.api.core.v1.ConfigMap"
"""A kind whose apiVersion, kind and metadata are described as those of most."""
_PRESERVE: Final = "x-kubernetes-preserve-unknown-fields"
_KIND: Final = "x-kubernetes-group-version-kind"


@cache
def _usual_text(field: str) -> str:
    text: str = schemas.described()[_USUAL]["properties"][field]["description"]
    return text


def _type_fields() -> Obj:
    return {field: {"description": _usual_text(field), "type": "string"} for field in ("apiVersion", "kind")}


def as_version_2(schema: Obj) -> Obj:
    """A definition as version 2 has it: kinds that keep unknown fields have no fields, so that kubectl accepts all."""
    return {"type": "object", _KIND: schema[_KIND]} if schema.get(_PRESERVE) and _KIND in schema else schema


def definition_of(row: Resource) -> str:
    """The name of the definition of a row's kind."""
    if row.custom:
        return ".".join((*reversed(row.group.split(".")), row.version, row.kind))
    return schemas.definition_name(row.group, row.version, row.kind) or ""


def name_of_kind(group: str, version: str, kind: str) -> str:
    return schemas.definition_name(group, version, kind) or ""


def closure(roots: Iterable[str], packaged: dict[str, Obj]) -> dict[str, Obj]:
    """The definitions by these names, and all that they refer to."""
    found: dict[str, Obj] = {}
    waiting = sorted(set(roots), reverse=True)
    while waiting:
        name = waiting.pop()
        if name in found or name not in packaged:
            continue
        found[name] = _SPECIAL.get(name) or _converted(packaged[name], waiting)
    return dict(sorted(found.items()))


def _converted(raw: Any, references: list[str]) -> Any:
    """A packaged schema in OpenAPI's dialect; what it refers to is added to `references`."""
    if not isinstance(raw, dict):
        return raw
    result: Obj = {}
    for key, value in raw.items():
        if key == "$ref":
            continue
        if key == "type" and isinstance(value, list):
            result[key] = value[0]
        elif key == "properties":
            result[key] = {name: _property(name, inner, references) for name, inner in value.items()}
        elif key in ("items", "additionalProperties"):
            result[key] = _converted(value, references)
        elif key == "oneOf":
            result[key] = [_converted(inner, references) for inner in value]
        else:
            result[key] = value
    reference = raw.get("$ref")
    if not isinstance(reference, str):
        return result
    name = reference.removeprefix(_PACKAGED_REFERENCE)
    references.append(name)
    return _referring(name, result)


def _property(name: str, raw: Any, references: list[str]) -> Any:
    if name in ("apiVersion", "kind") and isinstance(raw, dict) and "enum" in raw:
        raw = {key: value for key, value in raw.items() if key != "enum"}
    return _converted(raw, references)


def _referring(name: str, beside: Obj) -> Obj:
    """A reference with something said beside it, which OpenAPI allows only in this form."""
    if not beside:
        return {"$ref": REFERENCE + name}
    return {**beside, "allOf": [{"$ref": REFERENCE + name}]}


def custom_definitions(row: Resource, structural: Obj) -> dict[str, Obj]:
    """The definitions of a custom kind and of its list."""
    kind = {"group": row.group, "version": row.version, "kind": row.kind}
    properties = dict(structural.get("properties") or {})
    properties |= _type_fields()
    properties["metadata"] = _referring(schemas.OBJECT_META, {"description": _usual_text("metadata")})
    definition = {**structural, "type": "object", "properties": properties, "x-kubernetes-group-version-kind": [kind]}
    name = definition_of(row)
    listed = {
        "description": f"{row.kind}List is a list of {row.kind}",
        "type": "object",
        "required": ["items"],
        "properties": {
            **_type_fields(),
            "items": {"description": f"List of {row.plural}.", "type": "array", "items": {"$ref": REFERENCE + name}},
            "metadata": _referring(schemas.LIST_META, {"description": "Standard list metadata."}),
        },
        "x-kubernetes-group-version-kind": [{**kind, "kind": f"{row.kind}List"}],
    }
    return {name: definition, f"{name}List": listed}
