"""The schemas of every built-in kind, from the JSON schemas that PyPI's kubernetes-validate carries.

They are read once per process, on first use, and compiled kind by kind as needed; every cluster in the process
shares them. Descriptions, two thirds of the file, are dropped from what stays in memory: `described` reads them
again for the OpenAPI documents. The resource metrics API is not in the package and is defined here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, cast

import orjson

from srearena.cluster.embedded.objects import Obj
from srearena.cluster.embedded.registry.schema import Schema, Shape, compile_definition, compile_structural

VERSION: Final = "v1.34.0"
OBJECT_META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
LIST_META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta"
QUANTITY: Final = "io.k8s.apimachinery.pkg.api.resource.Quantity"
_PREFIX: Final = "#/$defs/"
_METRICS: Final = "io.k8s.metrics.pkg.apis.metrics.v1beta1."

# Definitions whose wire form OpenAPI cannot say.
_SHAPES: Final = {QUANTITY: Shape.QUANTITY, "io.k8s.apimachinery.pkg.util.intstr.IntOrString": Shape.INT_OR_STRING}
# Defaults of the fields that identify list items. OpenAPI v2 does not carry defaults, yet an item that leaves such
# a field out is the same item as one that spells it.
_KEY_DEFAULTS: Final = {
    ("io.k8s.api.core.v1.ContainerPort", "protocol"): "TCP",
    ("io.k8s.api.core.v1.ServicePort", "protocol"): "TCP",
    ("io.k8s.api.core.v1.LocalObjectReference", "name"): "",
}
_ZERO: Final[Mapping[Shape, Any]] = {Shape.STRING: "", Shape.INTEGER: 0}


class SchemasMissing(RuntimeError):
    """The installed kubernetes-validate does not carry the version that the cluster simulates."""


def described() -> dict[str, Obj]:
    """All definitions with their descriptions, freshly read: for explain and OpenAPI, not to be kept."""
    # The package is found but not imported: its code needs a validator, which takes longer to load than the schemas.
    package = find_spec("kubernetes_validate")
    folders = package.submodule_search_locations if package is not None else None
    folder = Path(folders[0] if folders else "", "kubernetes-json-schema", f"{VERSION}-local")
    try:
        definitions = orjson.loads((folder / "_definitions.json").read_bytes())["$defs"]
    except FileNotFoundError:
        raise SchemasMissing(
            f"the installed kubernetes-validate has no schemas for Kubernetes {VERSION}: "
            "install kubernetes-validate 1.34 or later"
        ) from None
    return {**definitions, **_metrics_definitions()}


@lru_cache(maxsize=1)
def _definitions() -> dict[str, Obj]:
    definitions = described()
    for raw in definitions.values():
        _strip(raw)
    return definitions


def _strip(raw: Obj) -> None:
    raw.pop("description", None)
    for name in ("items", "additionalProperties"):
        if isinstance(part := raw.get(name), dict):
            _strip(part)
    for part in raw.get("properties", {}).values():
        _strip(part)


@lru_cache(maxsize=1)
def _kinds() -> dict[tuple[str, str, str], str]:
    """The definition of each group, version and kind."""
    index: dict[tuple[str, str, str], str] = {}
    for name, raw in _definitions().items():
        for gvk in raw.get("x-kubernetes-group-version-kind", ()):
            index[gvk["group"], gvk["version"], gvk["kind"]] = name
    return index


def kinds() -> Iterator[tuple[str, str, str]]:
    """Every (group, version, kind) there is a definition for, lists and options included."""
    return iter(_kinds())


def definition_name(group: str, version: str, kind: str) -> str | None:
    return _kinds().get((group, version, kind))


_compiled: dict[str, Schema] = {}


def definition(reference: str) -> Schema:
    """The schema of a definition, by name or by `$ref`. Raises KeyError where there is none."""
    name = reference.removeprefix(_PREFIX)
    found = _compiled.get(name)
    if found is None:
        found = _compiled.setdefault(name, _build(name))
    return found


def _build(name: str) -> Schema:
    raw = _definitions()[name]
    if shape := _SHAPES.get(name):
        return Schema(shape, name)
    return compile_definition(raw, definition, name)


@lru_cache(maxsize=1024)
def for_kind(group: str, version: str, kind: str) -> Schema | None:
    """The schema of a built-in kind; None where the kind is not built in."""
    name = _kinds().get((group, version, kind))
    return definition(name) if name else None


def for_custom(open_api_v3_schema: Obj) -> Schema:
    """The schema of a custom resource, given the structural schema of one of its versions."""
    return compile_structural(open_api_v3_schema, definition(OBJECT_META))


def key_default(item: Schema, key: str) -> Any:
    """What a list item that leaves out one of its identifying fields is taken to have there; None for nothing."""
    field = item.fields.get(key)
    if field is None:
        return None
    if field.default is not None:
        return field.default
    if (default := _KEY_DEFAULTS.get((item.name, key))) is not None:
        return default
    return _ZERO.get(field.shape) if item.name and key in item.required else None


def item_keys(items: Schema) -> tuple[tuple[str, Any], ...]:
    """The fields that identify an item of a `map` list, sorted, with what stands for them where they are left out."""
    if items.item_keys is None:
        items.item_keys = tuple((key, key_default(items.element, key)) for key in sorted(items.list_keys))
    return items.item_keys


def _metrics_definitions() -> dict[str, Obj]:
    return cast("dict[str, Obj]", orjson.loads(orjson.dumps(_METRICS_DEFINITIONS)))


def _kind_definition(kind: str, description: str, properties: Obj, required: list[str]) -> Obj:
    return {
        "description": description,
        "type": ["object", "null"],
        "properties": {
            "apiVersion": {"type": ["string", "null"], "description": "The versioned schema of this object."},
            "kind": {"type": ["string", "null"], "description": "The REST resource this object represents."},
            **properties,
        },
        "required": required,
        "x-kubernetes-group-version-kind": [{"group": "metrics.k8s.io", "version": "v1beta1", "kind": kind}],
    }


_MEASURED: Final[Obj] = {
    "metadata": {"$ref": _PREFIX + OBJECT_META},
    "timestamp": {
        "$ref": _PREFIX + "io.k8s.apimachinery.pkg.apis.meta.v1.Time",
        "description": "The end of the interval in which the metrics were collected.",
    },
    "window": {
        "type": "string",
        "description": "The length of that interval.",
    },
}
_USAGE: Final[Obj] = {
    "type": ["object", "null"],
    "additionalProperties": {"$ref": _PREFIX + QUANTITY},
    "description": "The memory used is the memory working set.",
}


def _list_of(kind: str, description: str) -> Obj:
    items = {"type": ["array", "null"], "items": {"$ref": f"{_PREFIX}{_METRICS}{kind}"}, "description": description}
    properties = {"metadata": {"$ref": _PREFIX + LIST_META}, "items": items}
    return _kind_definition(f"{kind}List", f"{kind}List is a list of {kind}.", properties, ["items"])


_METRICS_DEFINITIONS: Final[dict[str, Obj]] = {
    f"{_METRICS}ContainerMetrics": {
        "description": "ContainerMetrics is what one container used.",
        "type": ["object", "null"],
        "properties": {
            "name": {"type": "string", "description": "The container's name, as in pod.spec.containers."},
            "usage": _USAGE,
        },
        "required": ["name", "usage"],
    },
    f"{_METRICS}NodeMetrics": _kind_definition(
        "NodeMetrics",
        "NodeMetrics is what one node used.",
        {**_MEASURED, "usage": _USAGE},
        ["timestamp", "window", "usage"],
    ),
    f"{_METRICS}NodeMetricsList": _list_of("NodeMetrics", "The metrics of each node."),
    f"{_METRICS}PodMetrics": _kind_definition(
        "PodMetrics",
        "PodMetrics is what the containers of one pod used.",
        {
            **_MEASURED,
            "containers": {
                "type": ["array", "null"],
                "items": {"$ref": f"{_PREFIX}{_METRICS}ContainerMetrics"},
                "description": "The metrics of each container, all from the same interval.",
            },
        },
        ["timestamp", "window", "containers"],
    ),
    f"{_METRICS}PodMetricsList": _list_of("PodMetrics", "The metrics of each pod."),
}
