"""Field selectors, and which fields of which kind they may speak of.

Parsing knows no kinds; `bind` resolves each field against the labels a kind supports and gives back a matcher.
A getter returns the field as the string a client compares with, never null: a field that is not set is the
empty string, a number or a flag prints as Go prints it. Wording follows k8s.io/apimachinery/pkg/fields and
the per-kind conversion functions of the API server.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from srearena.cluster.embedded.go_text import quoted
from srearena.cluster.embedded.objects import Obj, dig
from srearena.cluster.embedded.registry.selectors import SelectorError

Getter = Callable[[Obj], str]


@dataclass(frozen=True, slots=True)
class FieldRequirement:
    field: str
    value: str
    equal: bool = True

    def __str__(self) -> str:
        value = self.value.replace("\\", "\\\\").replace(",", "\\,").replace("=", "\\=")
        return f"{self.field}{'=' if self.equal else '!='}{value}"


@dataclass(frozen=True, slots=True)
class FieldLabels:
    """The fields that one kind can be selected by, and how it refuses any other."""

    getters: Mapping[str, Getter]
    refusal: str = "field label not supported: {}"

    def getter(self, field: str) -> Getter:
        found = self.getters.get(field)
        if found is None:
            raise SelectorError(self.refusal.format(field, quoted=quoted(field)))
        return found


@dataclass(frozen=True, slots=True)
class FieldSelector:
    requirements: tuple[FieldRequirement, ...] = ()

    @property
    def empty(self) -> bool:
        return not self.requirements

    def exact(self, field: str) -> str | None:
        """The one value that field must have, where the selector demands one."""
        return next((r.value for r in self.requirements if r.field == field and r.equal), None)

    def bind(self, labels: FieldLabels) -> Callable[[Obj], bool]:
        """A matcher for objects of the kind these labels belong to."""
        terms = tuple((labels.getter(r.field), r.value, r.equal) for r in self.requirements)

        def matches(obj: Obj) -> bool:
            return all((getter(obj) == value) is equal for getter, value, equal in terms)

        return matches

    def __str__(self) -> str:
        return ",".join(map(str, self.requirements))


@lru_cache(maxsize=4096)
def parse_field_selector(text: str) -> FieldSelector:
    """The selector of a `fieldSelector` parameter."""
    requirements = (_requirement(text, term) for term in sorted(_terms(text)) if term)
    # A bare `=` says nothing of any field, and selects everything.
    return FieldSelector(tuple(r for r in requirements if r.field or r.value))


def _terms(text: str) -> Iterable[str]:
    """The text cut at its commas, except where a backslash precedes them."""
    start, escaped = 0, False
    for position, char in enumerate(text):
        if escaped:
            escaped = False
        elif char == "\\":
            escaped = True
        elif char == ",":
            yield text[start:position]
            start = position + 1
    yield text[start:]


def _requirement(text: str, term: str) -> FieldRequirement:
    position = term.find("=")
    if position < 0:
        raise SelectorError(f"invalid selector: '{text}'; can't understand '{term}'")
    if position and term[position - 1] == "!":
        return FieldRequirement(term[: position - 1], _unescaped(term[position + 1 :]), equal=False)
    value = term[position + 1 :]
    return FieldRequirement(term[:position], _unescaped(value.removeprefix("=")))


def _unescaped(value: str) -> str:
    result: list[str] = []
    escaped = False
    for char in value:
        if escaped:
            if char not in "\\,=":
                raise SelectorError(f"invalid field selector: invalid escape sequence: \\{char}")
            result.append(char)
            escaped = False
        elif char == "\\":
            escaped = True
        elif char in ",=":
            raise SelectorError(f"invalid field selector: unescaped character in value: {ord(char)}")
        else:
            result.append(char)
    if escaped:
        raise SelectorError("invalid field selector: invalid escape sequence: \\")
    return "".join(result)


def printed(value: Any) -> str:
    """A scalar as a client would write it in a selector."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)


def at(path: str, absent: str = "") -> Getter:
    """A getter for the scalar at a dotted path."""
    steps = path.split(".")

    def get(obj: Obj) -> str:
        value = dig(obj, *steps)
        return absent if value is None else printed(value)

    return get


def _pod_ip(pod: Obj) -> str:
    return printed(dig(pod, "status", "podIPs", 0, "ip"))


def _event_source(event: Obj) -> str:
    component = dig(event, "source", "component") or dig(event, "deprecatedSource", "component")
    return printed(component or event.get("reportingComponent") or event.get("reportingController"))


def _either(*paths: str) -> Getter:
    getters = [at(path) for path in paths]
    return lambda obj: next(filter(None, (get(obj) for get in getters)), "")


_NAME: Final[Mapping[str, Getter]] = {"metadata.name": at("metadata.name")}
_NAMES: Final[Mapping[str, Getter]] = {**_NAME, "metadata.namespace": at("metadata.namespace")}
_REFERENCE_FIELDS: Final = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
# An event is the same object in both API groups; whichever way it was stored, both spellings find it.
_CORE_EVENT: Final[Mapping[str, Getter]] = {
    **{f"involvedObject.{f}": _either(f"involvedObject.{f}", f"regarding.{f}") for f in _REFERENCE_FIELDS},
    "reason": at("reason"),
    "reportingComponent": _either("reportingComponent", "reportingController"),
    "source": _event_source,
    "type": at("type"),
}
_EVENTS_EVENT: Final[Mapping[str, Getter]] = {
    **{f"regarding.{f}": _CORE_EVENT[f"involvedObject.{f}"] for f in _REFERENCE_FIELDS},
    "reason": _CORE_EVENT["reason"],
    "reportingController": _CORE_EVENT["reportingComponent"],
    "type": _CORE_EVENT["type"],
}

_UNREGISTERED: Final = FieldLabels(
    _NAMES, '{quoted} is not a known field selector: only "metadata.name", "metadata.namespace"'
)
# By (group, kind): the kinds that support more than their name and namespace.
_REGISTERED: Final[Mapping[tuple[str, str], FieldLabels]] = {
    ("", "Pod"): FieldLabels(
        {
            **_NAMES,
            "spec.nodeName": at("spec.nodeName"),
            "spec.host": at("spec.nodeName"),
            "spec.restartPolicy": at("spec.restartPolicy"),
            "spec.schedulerName": at("spec.schedulerName"),
            "spec.serviceAccountName": at("spec.serviceAccountName"),
            "spec.hostNetwork": at("spec.hostNetwork", "false"),
            "status.phase": at("status.phase"),
            "status.podIP": _pod_ip,
            # Accepted, yet never filled in by the server: only the empty value matches.
            "status.podIPs": lambda pod: "",
            "status.nominatedNodeName": at("status.nominatedNodeName"),
        }
    ),
    ("", "Node"): FieldLabels({**_NAME, "spec.unschedulable": at("spec.unschedulable", "false")}),
    ("", "ReplicationController"): FieldLabels({**_NAMES, "status.replicas": at("status.replicas", "0")}),
    ("", "Event"): FieldLabels({**_NAMES, **_CORE_EVENT}),
    ("events.k8s.io", "Event"): FieldLabels({**_NAMES, **_EVENTS_EVENT}),
    ("", "Namespace"): FieldLabels({**_NAME, "status.phase": at("status.phase")}),
    ("", "Secret"): FieldLabels({**_NAMES, "type": at("type")}),
    ("", "Service"): FieldLabels(
        {**_NAMES, "spec.clusterIP": at("spec.clusterIP"), "spec.type": at("spec.type")},
    ),
    ("batch", "Job"): FieldLabels(
        {**_NAMES, "status.successful": at("status.succeeded", "0")}, "field label {quoted} not supported for Job"
    ),
    ("certificates.k8s.io", "CertificateSigningRequest"): FieldLabels(
        {**_NAME, "spec.signerName": at("spec.signerName")}
    ),
    ("resource.k8s.io", "ResourceSlice"): FieldLabels(
        {**_NAME, "spec.nodeName": at("spec.nodeName"), "spec.driver": at("spec.driver")},
        "field label not supported for resource.k8s.io/v1, Kind=ResourceSlice: {}",
    ),
}


def field_labels(group: str, kind: str) -> FieldLabels:
    """The field labels of a built-in kind."""
    return _REGISTERED.get((group, kind), _UNREGISTERED)


def custom_field_labels(json_paths: Iterable[str] = (), *, namespaced: bool = True) -> FieldLabels:
    """The field labels of a custom resource, given the `jsonPath` of each of its selectableFields."""
    paths = [path.lstrip(".") for path in json_paths]
    return FieldLabels({**(_NAMES if namespaced else _NAME), **{path: at(path) for path in paths}})
