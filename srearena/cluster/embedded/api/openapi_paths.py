"""Paths of the API in OpenAPI v3: every verb of every row of the resource table, with its parameters."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from srearena.cluster.embedded.api.openapi_schemas import (
    DELETE_OPTIONS,
    PATCH,
    REFERENCE,
    STATUS,
    definition_of,
    name_of_kind,
)
from srearena.cluster.embedded.objects import Obj
from srearena.cluster.embedded.registry.resources import Resource, Subresource

_RESPONSE_TYPES: Final = ("application/json", "application/yaml")
_PATCH_TYPES: Final = (
    "application/apply-patch+yaml",
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
)
# Parameters by name: their type, and what they do.
_PARAMETERS: Final = {
    "allowWatchBookmarks": ("boolean", "Whether a watch may send bookmarks."),
    "command": ("string", "The command to run, one parameter per word."),
    "container": ("string", "The container of the pod that is meant."),
    "continue": ("string", "Where to go on with a list that came in pieces."),
    "dryRun": ("string", "With the value All nothing is stored."),
    "fieldManager": ("string", "The name under which the changed fields are owned."),
    "fieldSelector": ("string", "Restricts the result by fields."),
    "fieldValidation": ("string", "What to do about unknown and duplicate fields: Ignore, Warn or Strict."),
    "follow": ("boolean", "Whether to go on with new lines as they come."),
    "force": ("boolean", "Whether to take fields over from other managers."),
    "gracePeriodSeconds": ("integer", "How long the object may take to end."),
    "labelSelector": ("string", "Restricts the result by labels."),
    "limit": ("integer", "The most objects to return at once."),
    "limitBytes": ("integer", "The most bytes to return."),
    "orphanDependents": ("boolean", "Whether dependents stay when their owner goes; see propagationPolicy."),
    "path": ("string", "The path to ask for."),
    "ports": ("integer", "The ports to forward."),
    "pretty": ("string", "If true, the output is indented."),
    "previous": ("boolean", "Whether the container before the present one is meant."),
    "propagationPolicy": ("string", "What becomes of dependents: Orphan, Background or Foreground."),
    "resourceVersion": ("string", "The version that the result must not be older than."),
    "resourceVersionMatch": ("string", "How resourceVersion is to be understood: Exact or NotOlderThan."),
    "sendInitialEvents": ("boolean", "Whether a watch begins with what is there already."),
    "sinceSeconds": ("integer", "How far back to begin."),
    "sinceTime": ("string", "When to begin."),
    "stderr": ("boolean", "Whether standard error is wanted."),
    "stdin": ("boolean", "Whether standard input is given."),
    "stdout": ("boolean", "Whether standard output is wanted."),
    "stream": ("string", "Which stream to show: All, Stdout or Stderr."),
    "tailLines": ("integer", "How many lines from the end to show."),
    "timeoutSeconds": ("integer", "How long a watch lasts."),
    "timestamps": ("boolean", "Whether each line begins with its time."),
    "tty": ("boolean", "Whether a terminal is wanted."),
    "watch": ("boolean", "Whether to go on with changes as they come."),
}
_LIST: Final = (
    "allowWatchBookmarks continue fieldSelector labelSelector limit resourceVersion resourceVersionMatch "
    "sendInitialEvents timeoutSeconds watch"
).split()
_WRITE: Final = ("dryRun", "fieldManager", "fieldValidation")
_DELETE: Final = ("dryRun", "gracePeriodSeconds", "orphanDependents", "propagationPolicy")
# By verb: HTTP method, x-kubernetes-action, the word in operation ids, query parameters.
_VERBS: Final = {
    "get": ("get", "get", "read", ()),
    "list": ("get", "list", "list", tuple(_LIST)),
    "create": ("post", "post", "create", _WRITE),
    "update": ("put", "put", "replace", _WRITE),
    "patch": ("patch", "patch", "patch", (*_WRITE, "force")),
    "delete": ("delete", "delete", "delete", _DELETE),
    "deletecollection": ("delete", "deletecollection", "delete", (*_DELETE, *_LIST)),
}
_CONNECT: Final = {
    "log": "container follow limitBytes previous sinceSeconds sinceTime stream tailLines timestamps",
    "exec": "command container stderr stdin stdout tty",
    "attach": "container stderr stdin stdout tty",
    "portforward": "ports",
    "proxy": "path",
}
_COLLECTION: Final = ("list", "create", "deletecollection")
_SINGLE: Final = ("get", "update", "patch", "delete")


def paths_of(rows: Iterable[Resource]) -> Obj:
    """The paths of one group version."""
    paths: Obj = {}
    for row in rows:
        root = f"/apis/{row.group}/{row.version}" if row.group else f"/api/{row.version}"
        base = f"{root}/namespaces/{{namespace}}/{row.plural}" if row.namespaced else f"{root}/{row.plural}"
        _add(paths, base, row, [v for v in _COLLECTION if v in row.verbs])
        if row.namespaced and "list" in row.verbs:
            _add(paths, f"{root}/{row.plural}", row, ["list"], everywhere=True)
        _add(paths, f"{base}/{{name}}", row, [v for v in _SINGLE if v in row.verbs])
        for sub in row.subresources:
            _add_subresource(paths, f"{base}/{{name}}/{sub.name}", row, sub)
    return dict(sorted(paths.items()))


def _add(paths: Obj, path: str, row: Resource, verbs: list[str], *, everywhere: bool = False) -> None:
    if not verbs:
        return
    item = _path_item(path)
    for verb in verbs:
        name = definition_of(row)
        response_kind = f"{name}List" if verb in ("list", "deletecollection") else name
        item[_VERBS[verb][0]] = _operation(row, verb, response_kind, name, everywhere=everywhere)
    paths[path] = item


def _add_subresource(paths: Obj, path: str, row: Resource, sub: Subresource) -> None:
    item = _path_item(path)
    own = name_of_kind(row.group if sub.group is None else sub.group, sub.version or row.version, sub.kind or row.kind)
    name = own or definition_of(row)
    for verb in sub.verbs:
        if sub.name in _CONNECT:
            method = _VERBS[verb][0]
            item[method] = _connection(row, sub, method)
        else:
            item[_VERBS[verb][0]] = _operation(row, verb, name, name, sub=sub)
    paths[path] = item


def _path_item(path: str) -> Obj:
    named = [_parameter(name, "path", "string", f"The {name}.") for name in re.findall(r"{(\w+)}", path)]
    return {"parameters": [*named, _query("pretty")]}


def _operation(
    row: Resource,
    verb: str,
    response_kind: str,
    body_kind: str,
    *,
    sub: Subresource | None = None,
    everywhere: bool = False,
) -> Obj:
    method, action, word, parameters = _VERBS[verb]
    status = verb == "delete"
    answer = {"description": "OK", "content": _content(_RESPONSE_TYPES, STATUS if status else response_kind)}
    responses: Obj = {"200": answer}
    if verb in ("create", "update", "patch"):
        responses["201"] = {**answer, "description": "Created"}
    if verb in ("create", "delete"):
        responses["202"] = {**answer, "description": "Accepted"}
    responses["401"] = {"description": "Unauthorized"}
    operation: Obj = {
        "tags": [_tag(row)],
        "description": f"{word} {'objects of kind' if verb in ('list', 'deletecollection') else 'the'} {row.kind}",
        "operationId": _operation_id(row, word, verb, sub, everywhere),
        "parameters": [_query(name) for name in parameters],
        "responses": responses,
        "x-kubernetes-action": action,
        "x-kubernetes-group-version-kind": _kind(row, sub),
    }
    if verb == "patch":
        types = _PATCH_TYPES[:-1] if row.custom else _PATCH_TYPES
        operation["requestBody"] = {"content": _content(types, PATCH), "required": True}
    elif verb in ("create", "update"):
        operation["requestBody"] = {"content": _content(("*/*",), body_kind), "required": True}
    elif method == "delete":
        operation["requestBody"] = {"content": _content(("*/*",), DELETE_OPTIONS)}
    return operation


def _connection(row: Resource, sub: Subresource, method: str) -> Obj:
    content = (
        {"text/plain": {"schema": {"type": "string"}}} if sub.name == "log" else {"*/*": {"schema": {"type": "string"}}}
    )
    action = "get" if sub.name == "log" else "connect"
    return {
        "tags": [_tag(row)],
        "description": f"connect {method.upper()} requests to {sub.name} of {row.kind}",
        "operationId": f"connect{_camel(row)}{method.capitalize()}{_scope(row)}{row.kind}{sub.name.capitalize()}",
        "parameters": [_query(name) for name in _CONNECT[sub.name].split()],
        "responses": {"200": {"description": "OK", "content": content}, "401": {"description": "Unauthorized"}},
        "x-kubernetes-action": action,
        "x-kubernetes-group-version-kind": _kind(row, sub),
    }


def _kind(row: Resource, sub: Subresource | None) -> Obj:
    if sub is None:
        return {"group": row.group, "version": row.version, "kind": row.kind}
    group = row.group if sub.group is None else sub.group
    return {"group": group, "version": sub.version or row.version, "kind": sub.kind or row.kind}


def _operation_id(row: Resource, word: str, verb: str, sub: Subresource | None, everywhere: bool) -> str:
    collection = "Collection" if verb == "deletecollection" else ""
    tail = sub.name.capitalize() if sub else "ForAllNamespaces" if everywhere else ""
    scope = "" if everywhere else _scope(row)
    return f"{word}{_camel(row)}{collection}{scope}{row.kind}{tail}"


def _scope(row: Resource) -> str:
    return "Namespaced" if row.namespaced else ""


def _camel(row: Resource) -> str:
    words = (row.group.removesuffix(".k8s.io") or "core").split(".")
    return "".join(word[:1].upper() + word[1:] for word in words) + row.version.capitalize()


def _tag(row: Resource) -> str:
    return f"{(row.group.removesuffix('.k8s.io') or 'core').replace('.', '')}_{row.version}"


def _content(types: Iterable[str], name: str) -> Obj:
    return {kind: {"schema": {"$ref": REFERENCE + name} if name else {"type": "object"}} for kind in types}


def _query(name: str) -> Obj:
    kind, description = _PARAMETERS[name]
    return _parameter(name, "query", kind, description)


def _parameter(name: str, place: str, kind: str, description: str) -> Obj:
    parameter: Obj = {"name": name, "in": place, "description": description}
    if place == "path":
        parameter["required"] = True
    return {**parameter, "schema": {"type": kind, "uniqueItems": True}}
