"""Discovery, OpenAPI and tables of the sample API server."""

from __future__ import annotations

from srearena.cluster.embedded.objects import Obj
from srearena.cluster.embedded.programs.extension_apis import wardle

_VERBS = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]
_TEXT = {"type": "string"}
_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
_COLUMNS = [
    {"name": "Name", "type": "string", "format": "name", "description": "Name of the object", "priority": 0},
    {"name": "Created At", "type": "date", "format": "", "description": "When the object was created", "priority": 0},
]
_SPECS = {
    "v1alpha1": {"reference": _TEXT, "referenceType": _TEXT},
    "v1beta1": {"flunderReference": _TEXT, "fischerReference": _TEXT, "referenceType": _TEXT},
}


def _group() -> Obj:
    versions = [{"groupVersion": f"{wardle.GROUP}/{version}", "version": version} for version in wardle.VERSIONS]
    return {"name": wardle.GROUP, "versions": versions, "preferredVersion": versions[-1]}


def group_list() -> Obj:
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": [_group()]}


def group_document() -> Obj:
    return {"kind": "APIGroup", "apiVersion": "v1", **_group()}


def resource_list(version: str) -> Obj:
    resources = [
        {"name": plural, "singularName": kind.lower(), "namespaced": namespaced, "kind": kind, "verbs": _VERBS}
        for plural, kind, namespaced in wardle.served(version)
    ]
    group_version = f"{wardle.GROUP}/{version}"
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": resources}


def table_of(document: Obj) -> Obj:
    """The table that a server without columns of its own gives of an object or a list."""
    items = document.get("items", [document])
    rows = [
        {
            "cells": [item["metadata"]["name"], item["metadata"]["creationTimestamp"]],
            "object": {
                "kind": "PartialObjectMetadata",
                "apiVersion": "meta.k8s.io/v1",
                "metadata": item["metadata"],
            },
        }
        for item in items
    ]
    metadata = {"resourceVersion": document["metadata"].get("resourceVersion", "")}
    head = {"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": metadata}
    return {**head, "columnDefinitions": _COLUMNS, "rows": rows}


def open_api(version: str) -> Obj:
    schemas: Obj = {_META: {"type": "object", "description": "Standard object's metadata."}}
    for _, kind, _ in wardle.served(version):
        own: Obj = {"disallowedFlunders": {"type": "array", "items": _TEXT}}
        if kind == "Flunder":
            own = {"spec": {"type": "object", "properties": _SPECS[version]}, "status": {"type": "object"}}
        schemas[f"io.k8s.sample-apiserver.pkg.apis.wardle.{version}.{kind}"] = {
            "type": "object",
            "properties": {
                "apiVersion": _TEXT,
                "kind": _TEXT,
                "metadata": {"allOf": [{"$ref": f"#/components/schemas/{_META}"}], "default": {}},
                **own,
            },
            "x-kubernetes-group-version-kind": [{"group": wardle.GROUP, "kind": kind, "version": version}],
        }
    return {
        "openapi": "3.0.0",
        "info": {"title": "Wardle", "version": "0.1"},
        "paths": _paths(version),
        "components": {"schemas": schemas},
    }


def _paths(version: str) -> Obj:
    """The paths of writes, with what clients read of them: the kind, and that fields are validated by the server."""
    paths: Obj = {}
    for plural, kind, namespaced in wardle.served(version):
        where = "namespaces/{namespace}/" if namespaced else ""
        root = f"/apis/{wardle.GROUP}/{version}/{where}{plural}"
        about = {"group": wardle.GROUP, "version": version, "kind": kind}
        for path, method, action in ((root, "post", "post"), (f"{root}/{{name}}", "patch", "patch")):
            operation = {"x-kubernetes-action": action, "x-kubernetes-group-version-kind": about, "responses": {}}
            parameters = [{"name": "fieldValidation", "in": "query", "schema": _TEXT}]
            paths[path] = {method: {**operation, "parameters": parameters}}
    return paths
