"""What names, labels and the rest of an object's metadata may look like."""

from __future__ import annotations

import re
from typing import Any

from srearena.cluster.embedded.go_text import quoted
from srearena.cluster.embedded.objects import Obj, meta
from srearena.cluster.embedded.registry import label_syntax
from srearena.cluster.embedded.registry.errors import FieldError
from srearena.cluster.embedded.registry.label_syntax import label_value_errors, qualified_name_errors
from srearena.cluster.embedded.registry.resources import Resource
from srearena.cluster.embedded.registry.strategy import Strategy

_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_LABEL_1035 = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")

ANNOTATIONS_LIMIT = 256 * 1024
_STANDARD_FINALIZERS = frozenset({"kubernetes", "orphan", "foregroundDeletion"})

_LABEL_TEXT = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with "
    "an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
_LABEL_1035_TEXT = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, "
    "and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is "
    "'[a-z]([-a-z0-9]*[a-z0-9])?')"
)


def label_errors(name: str, is_prefix: bool = False) -> list[str]:
    """RFC 1123 label: names of namespaces, containers and the like."""
    whole = _whole(name, is_prefix)
    text = "must not contain dots" if "." in whole and not label_syntax.subdomain_syntax_errors(whole) else _LABEL_TEXT
    return _dns_label_errors(whole, _LABEL, text)


def label_1035_errors(name: str, is_prefix: bool = False) -> list[str]:
    """RFC 1035 label: names of services."""
    return _dns_label_errors(_whole(name, is_prefix), _LABEL_1035, _LABEL_1035_TEXT)


def subdomain_errors(name: str, is_prefix: bool = False) -> list[str]:
    """RFC 1123 subdomain: names of most objects."""
    return list(label_syntax.subdomain_errors(_whole(name, is_prefix)))


def path_segment_errors(name: str, is_prefix: bool = False) -> list[str]:
    """Names that need only fit into a URL path: RBAC objects."""
    if not is_prefix and name in (".", ".."):
        return [f"may not be '{name}'"]
    return [f"may not contain '{bad}'" for bad in ("/", "%") if bad in name]


def _whole(name: str, is_prefix: bool) -> str:
    """A generateName may end in the dash that the random tail will follow."""
    return name[:-1] + "a" if is_prefix and name.endswith("-") else name


def _dns_label_errors(name: str, shape: re.Pattern[str], text: str) -> list[str]:
    problems = [] if len(name.encode()) <= 63 else ["must be no more than 63 characters"]
    if not shape.fullmatch(name):
        problems.append(text)
    return problems


def labels_errors(labels: dict[str, Any] | None, path: str) -> list[FieldError]:
    problems: list[FieldError] = []
    for key, value in sorted((labels or {}).items()):
        problems += [FieldError.invalid(path, key, text) for text in qualified_name_errors(key)]
        problems += [FieldError.invalid(path, value, text) for text in label_value_errors(str(value))]
    return problems


def annotations_errors(annotations: dict[str, Any] | None, path: str) -> list[FieldError]:
    problems: list[FieldError] = []
    size = 0
    for key, value in sorted((annotations or {}).items()):
        problems += [FieldError.invalid(path, key, text) for text in qualified_name_errors(key.lower())]
        size += len(key) + len(str(value).encode(errors="replace"))
    if size > ANNOTATIONS_LIMIT:
        problems.append(FieldError.too_long(path, ANNOTATIONS_LIMIT))
    return problems


def metadata_errors(row: Resource, obj: Obj, old: Obj | None, strategy: Strategy) -> list[FieldError]:
    """What every object is held to, whatever its kind."""
    metadata = meta(obj)
    problems: list[FieldError] = []
    check = strategy.name_errors or subdomain_errors
    if metadata.get("generateName"):
        prefix = str(metadata["generateName"])
        problems += [FieldError.invalid("metadata.generateName", prefix, text) for text in check(prefix, True)]
    name = str(metadata.get("name") or "")
    if not name:
        problems.append(FieldError.required("metadata.name", "name or generateName is required"))
    else:
        problems += [FieldError.invalid("metadata.name", name, text) for text in check(name, False)]
    problems += labels_errors(metadata.get("labels"), "metadata.labels")
    problems += annotations_errors(metadata.get("annotations"), "metadata.annotations")
    problems += _owner_errors(metadata.get("ownerReferences") or [])
    problems += _finalizer_errors(metadata.get("finalizers") or [], row)
    if old is not None:
        problems += _change_errors(metadata, meta(old))
    return problems


def _finalizer_errors(finalizers: list[Any], row: Resource) -> list[FieldError]:
    problems: list[FieldError] = []
    for index, finalizer in enumerate(map(str, finalizers)):
        problems += [FieldError.invalid("metadata.finalizers", finalizer, t) for t in qualified_name_errors(finalizer)]
        if "/" not in finalizer and finalizer not in _STANDARD_FINALIZERS and not row.custom:
            text = "name is neither a standard finalizer name nor is it fully qualified"
            problems.append(FieldError.invalid(f"metadata.finalizers[{index}]", finalizer, text))
    return problems


def _owner_errors(references: list[Obj]) -> list[FieldError]:
    problems: list[FieldError] = []
    controllers: list[str] = []
    for reference in references:
        for key in ("apiVersion", "kind", "name", "uid"):
            if not reference.get(key):
                # The real paths have no index here.
                text = "version must not be empty" if key == "apiVersion" else "must not be empty"
                problems.append(FieldError.invalid(f"metadata.ownerReferences.{key}", reference.get(key) or "", text))
        if reference.get("controller"):
            controllers.append(f"{reference.get('kind')}/{reference.get('name')}")
    if len(controllers) > 1:
        text = (
            'Only one reference can have Controller set to true. Found "true" in references for '
            f"{controllers[0]} and {controllers[1]}"
        )
        problems.append(FieldError.invalid("metadata.ownerReferences", references, text))
    return problems


def _change_errors(metadata: Obj, before: Obj) -> list[FieldError]:
    problems: list[FieldError] = []
    for key in ("name", "namespace"):
        if metadata.get(key) != before.get(key):
            problems.append(FieldError.invalid(f"metadata.{key}", metadata.get(key) or "", "field is immutable"))
    if before.get("deletionTimestamp"):
        added = [f for f in metadata.get("finalizers") or () if f not in (before.get("finalizers") or ())]
        if added:
            found = ", ".join(quoted(str(finalizer)) for finalizer in added)
            text = (
                "no new finalizers can be added if the object is being deleted, "
                f"found new finalizers []string{{{found}}}"
            )
            problems.append(FieldError.forbidden("metadata.finalizers", text))
    return problems
