"""OpenAPI: the index and the documents of version 3, and version 2 in one piece.

Documents of built-in groups are the same for every cluster, so the process keeps one copy of each, made when it is
first asked for. Those of custom groups are rebuilt when a definition changes.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache
from typing import Any, Final

import orjson

from srearena.cluster.embedded.api import custom, openapi_protobuf
from srearena.cluster.embedded.api.health import VERSION
from srearena.cluster.embedded.api.openapi_paths import paths_of
from srearena.cluster.embedded.api.openapi_schemas import (
    DELETE_OPTIONS,
    PATCH,
    REFERENCE,
    STATUS,
    WATCH_EVENT,
    as_version_2,
    closure,
    custom_definitions,
    definition_of,
    name_of_kind,
)
from srearena.cluster.embedded.objects import Obj, dig
from srearena.cluster.embedded.registry import schemas
from srearena.cluster.embedded.registry.resources import Resource, ResourceTable
from srearena.cluster.embedded.store import Store

_ALWAYS: Final = (STATUS, DELETE_OPTIONS, PATCH, WATCH_EVENT, schemas.OBJECT_META, schemas.LIST_META)
_SECURITY: Final[Obj] = {
    "BearerToken": {
        "type": "apiKey",
        "description": "Bearer Token authentication",
        "name": "authorization",
        "in": "header",
    }
}
PROTOBUF_V2: Final = "application/com.github.proto-openapi.spec.v2"


class OpenApi:
    def __init__(self, table: ResourceTable, store: Store) -> None:
        self._table = table
        self._store = store
        self._custom: dict[tuple[str, str], tuple[str, bytes]] = {}
        self._older: tuple[str, bytes] | None = None
        """Version 2, and the fingerprint of what it shows."""

    def index(self) -> Obj:
        """`/openapi/v3`."""
        paths = {}
        for group, versions in self._table.groups().items():
            for version in versions:
                served = self._table.aggregated.get((group, version))
                if served is not None and not served.open_api:
                    continue
                path = f"apis/{group}/{version}" if group else f"api/{version}"
                fingerprint = self.fingerprint(group, version)
                paths[path] = {"serverRelativeURL": f"/openapi/v3/{path}?hash={fingerprint}"}
        return {"paths": dict(sorted(paths.items()))}

    def fingerprint(self, group: str, version: str) -> str:
        """Changes whenever the document does; found without building it."""
        rows = self._table.rows(group, version)
        parts: list[Any] = [schemas.VERSION, group, version, [row.plural for row in rows]]
        parts += [custom.version_of(self._store, row) for row in rows if row.custom]
        served = self._table.aggregated.get((group, version))
        parts += [hashlib.sha512(served.open_api).hexdigest()] if served is not None else []
        return hashlib.sha512(orjson.dumps(parts, option=orjson.OPT_SORT_KEYS)).hexdigest().upper()

    def document(self, group: str, version: str) -> bytes | None:
        """The document of one group version; None where it is not served."""
        served = self._table.aggregated.get((group, version))
        if served is not None:
            return served.open_api or None
        rows = self._table.rows(group, version)
        if not rows:
            return None
        if not any(row.custom for row in rows):
            return _built_in(tuple(rows))
        fingerprint = self.fingerprint(group, version)
        kept = self._custom.get((group, version))
        if kept is None or kept[0] != fingerprint:
            structural = {row.plural: self._structural(row) for row in rows if row.custom}
            kept = self._custom[group, version] = (fingerprint, orjson.dumps(_document(rows, structural)))
        return kept[1]

    def _structural(self, row: Resource) -> Obj:
        found: Obj = dig(custom.version_of(self._store, row), "schema", "openAPIV3Schema", default={})
        return found

    def version_2(self, *, binary: bool = False) -> bytes:
        """`/openapi/v2`: everything at once, in the older dialect; without what extension API servers serve."""
        places = [
            (group, version)
            for group, versions in self._table.groups().items()
            for version in versions
            if (group, version) not in self._table.aggregated
        ]
        fingerprint = "".join(self.fingerprint(*place) for place in places)
        if self._older is None or self._older[0] != fingerprint:
            self._older = (fingerprint, orjson.dumps(self._version_2(places)))
        text = self._older[1]
        return _as_protobuf(text) if binary else text

    def before_fork(self) -> None:
        """Make what clients of every copy ask for, so that no copy has to."""
        self.version_2(binary=True)

    def _version_2(self, places: list[tuple[str, str]]) -> Obj:
        paths: Obj = {}
        definitions: Obj = {}
        for group, version in places:
            document = orjson.loads(self.document(group, version) or b"{}")
            paths |= {path: _old_path_item(item) for path, item in document["paths"].items()}
            schemas_here = document["components"]["schemas"].items()
            definitions |= {name: _old(as_version_2(schema)) for name, schema in schemas_here}
        return {
            "swagger": "2.0",
            "info": {"title": "Kubernetes", "version": VERSION["gitVersion"]},
            "paths": dict(sorted(paths.items())),
            "definitions": dict(sorted(definitions.items())),
            "securityDefinitions": _SECURITY,
            "security": [{"BearerToken": []}],
        }


@lru_cache(maxsize=2)
def _as_protobuf(document: bytes) -> bytes:
    return openapi_protobuf.encode(orjson.loads(document))


@lru_cache(maxsize=128)
def _built_in(rows: tuple[Resource, ...]) -> bytes:
    return orjson.dumps(_document(list(rows), {}))


def _document(rows: list[Resource], structural: dict[str, Obj]) -> Obj:
    roots = list(_ALWAYS)
    own: dict[str, Obj] = {}
    for row in rows:
        if row.custom:
            own |= custom_definitions(row, structural[row.plural])
        else:
            roots += [definition_of(row), f"{definition_of(row)}List"]
        for sub in row.subresources:
            if sub.kind:
                roots.append(
                    name_of_kind(row.group if sub.group is None else sub.group, sub.version or row.version, sub.kind)
                )
    packaged = schemas.described()
    components = {**closure(roots, packaged), **own}
    return {
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": VERSION["gitVersion"]},
        "paths": paths_of(rows),
        "components": {"schemas": dict(sorted(components.items())), "securitySchemes": _SECURITY},
        "security": [{"BearerToken": []}],
    }


def _old_path_item(item: Obj) -> Obj:
    return {
        key: [_old_parameter(p) for p in value] if key == "parameters" else _old_operation(value)
        for key, value in item.items()
    }


def _old_parameter(parameter: Obj) -> Obj:
    return {**{key: value for key, value in parameter.items() if key != "schema"}, **parameter["schema"]}


def _old_operation(operation: Obj) -> Obj:
    old = {key: value for key, value in operation.items() if key != "requestBody"}
    old["parameters"] = [_old_parameter(parameter) for parameter in operation["parameters"]]
    body = operation.get("requestBody")
    if body is not None:
        content: Obj = body["content"]
        old["consumes"] = list(content)
        schema = _old(next(iter(content.values()))["schema"])
        required = {"required": True} if body.get("required") else {}
        old["parameters"].append({"name": "body", "in": "body", "schema": schema, **required})
    old["produces"] = ["application/json", "application/yaml"]
    old["responses"] = {code: _old_response(response) for code, response in operation["responses"].items()}
    return old


def _old_response(response: Obj) -> Obj:
    old: Obj = {"description": response["description"]}
    content = response.get("content")
    if content:
        old["schema"] = _old(next(iter(content.values()))["schema"])
    return old


def _old(schema: Any) -> Any:
    """A schema in the dialect of version 2, which has neither allOf beside a description nor oneOf."""
    if isinstance(schema, list):
        return [_old(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    result: Obj = {}
    for key, value in schema.items():
        if key == "$ref" and isinstance(value, str):
            result[key] = value.replace(REFERENCE, "#/definitions/")
        elif key == "allOf" and len(value) == 1 and "$ref" in value[0]:
            result["$ref"] = value[0]["$ref"].replace(REFERENCE, "#/definitions/")
        elif key == "oneOf" and isinstance(value, list):
            result["type"] = "string"
        elif key in ("nullable", "anyOf", "not"):
            continue
        else:
            result[key] = _old(value)
    return result
