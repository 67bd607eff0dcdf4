"""Reviews: requests that are answered and never stored."""

from __future__ import annotations

from typing import Any

from srearena.cluster.embedded.objects import Obj, dig, meta, namespace_of
from srearena.cluster.embedded.registry.errors import FieldError
from srearena.cluster.embedded.registry.strategies.checks import Problems
from srearena.cluster.embedded.registry.strategy import Strategy

_BOTH = "cannot be specified in combination with resourceAttributes"
_NEITHER = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
_SERVERS_OWN = ("managedFields", "namespace")


def _attributes(problems: Problems, spec: Obj) -> None:
    resource, path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    if resource is not None and path is not None:
        problems.append(FieldError.invalid("spec.nonResourceAttributes", _path_as_go(path), _BOTH))
    if resource is None and path is None:
        problems.append(FieldError.invalid("spec.resourceAttributes", None, _NEITHER))


def _path_as_go(attributes: Obj) -> dict[str, Any]:
    return {"Path": attributes.get("path") or "", "Verb": attributes.get("verb") or ""}


def _validate_self(obj: Obj) -> Problems:
    problems: Problems = []
    _attributes(problems, obj.get("spec") or {})
    return problems


def _validate_subject(obj: Obj) -> Problems:
    problems: Problems = []
    spec = obj.get("spec") or {}
    _attributes(problems, spec)
    if not spec.get("user") and not spec.get("groups"):
        text = "at least one of user or group must be specified"
        problems.append(FieldError.invalid("spec.user", spec.get("user") or "", text))
    return problems


def _validate_local(obj: Obj) -> Problems:
    problems = _validate_subject(obj)
    spec = obj.get("spec") or {}
    if any(value for key, value in meta(obj).items() if key not in _SERVERS_OWN):
        problems.append(FieldError.invalid("metadata", meta(obj), "must be empty except for namespace"))
    within = dig(spec, "resourceAttributes", "namespace", default="")
    if spec.get("resourceAttributes") is not None and within != namespace_of(obj):
        problems.append(
            FieldError.invalid("spec.resourceAttributes.namespace", within, "must match metadata.namespace")
        )
    if spec.get("nonResourceAttributes") is not None:
        shown = _path_as_go(spec["nonResourceAttributes"])
        problems.append(FieldError.invalid("spec.nonResourceAttributes", shown, "disallowed on this kind of request"))
    return problems


STRATEGIES = {
    "selfsubjectaccessreviews.authorization.k8s.io": Strategy(validate=_validate_self),
    "subjectaccessreviews.authorization.k8s.io": Strategy(validate=_validate_subject),
    "localsubjectaccessreviews.authorization.k8s.io": Strategy(validate=_validate_local),
}
