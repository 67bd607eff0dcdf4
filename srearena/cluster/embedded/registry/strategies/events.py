"""Events, kept in the core version; what is not said in one is said to be empty."""

from __future__ import annotations

from srearena.cluster.embedded.objects import Obj, namespace_of
from srearena.cluster.embedded.registry import names
from srearena.cluster.embedded.registry.errors import FieldError
from srearena.cluster.embedded.registry.strategies import checks
from srearena.cluster.embedded.registry.strategies.checks import Problems
from srearena.cluster.embedded.registry.strategies.parts import part
from srearena.cluster.embedded.registry.strategy import Strategy

_MOMENTS = ("firstTimestamp", "lastTimestamp", "eventTime")
_LONGEST = 128
_LONGEST_NOTE = 1024
_NAMES = ("reportingComponent", "reportingInstance")


def _default(obj: Obj) -> None:
    part(obj, "involvedObject")
    part(obj, "source")
    for key in _MOMENTS:
        obj.setdefault(key, None)
    for key in _NAMES:
        if obj.get(key) is None:
            obj[key] = ""


def _validate(obj: Obj) -> Problems:
    """Old-style events name an object of their own namespace; those with an event time say who reports them."""
    problems: Problems = []
    namespace = namespace_of(obj)
    about = (obj.get("involvedObject") or {}).get("namespace") or ""
    if obj.get("eventTime") is None:
        matches = about == namespace or (not about and namespace in ("", "default"))
    else:
        matches = bool(about) or namespace in ("default", "kube-system")
    if not matches:
        problems.append(FieldError.invalid("involvedObject.namespace", about, "does not match event.namespace"))
    if obj.get("eventTime") is not None:
        _reported(problems, obj)
    return problems


def _reported(problems: Problems, obj: Obj) -> None:
    reporter = obj.get("reportingComponent") or ""
    checks.required(problems, "reportingComponent", reporter)
    checks.qualified_name(problems, "reportingComponent", reporter)
    for key in ("reportingInstance", "action", "reason"):
        if checks.required(problems, key, obj.get(key)) and len(obj[key]) > _LONGEST:
            problems.append(FieldError.invalid(key, "", f"can have at most {_LONGEST} characters"))
    if len(obj.get("message") or "") > _LONGEST_NOTE:
        problems.append(FieldError.invalid("message", "", f"can have at most {_LONGEST_NOTE} characters"))


def _validate_new_style(obj: Obj) -> Problems:
    """Events written through their own group leave the fields of the old style alone."""
    problems: Problems = []
    checks.required(problems, "eventTime", obj.get("eventTime"))
    if obj.get("type") not in ("Normal", "Warning"):
        problems.append(FieldError.invalid("type", "", f"has invalid value: {obj.get('type') or ''}"))
    for key in ("firstTimestamp", "lastTimestamp", "count"):
        if obj.get(key):
            problems.append(FieldError.invalid(key, "", "needs to be unset"))
    if any((obj.get("source") or {}).values()):
        problems.append(FieldError.invalid("source", "", "needs to be unset"))
    return problems


STRATEGIES = {
    "events": Strategy(default=_default, validate=_validate, name_errors=names.path_segment_errors),
    "events.events.k8s.io": Strategy(default=_default, validate=_validate, validate_create=_validate_new_style),
}
