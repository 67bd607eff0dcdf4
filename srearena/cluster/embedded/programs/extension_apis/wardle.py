"""The resources of the sample API server: flunders, in two versions, and fischers, which forbid names of flunders.

Objects are stored as v1beta1 has them.
"""

from __future__ import annotations

from srearena.cluster.embedded.objects import Obj, copy_of, dig
from srearena.cluster.embedded.registry.errors import FieldError

GROUP = "wardle.example.com"
VERSIONS = ("v1alpha1", "v1beta1")
_REFERENCES = {"Flunder": "flunderReference", "Fischer": "fischerReference"}


def served(version: str) -> list[tuple[str, str, bool]]:
    """Plural, kind and whether namespaced, of the resources of a version."""
    flunders = ("flunders", "Flunder", True)
    return [("fischers", "Fischer", False), flunders] if version == "v1alpha1" else [flunders]


def to_storage(obj: Obj, version: str) -> Obj:
    """An object as it is stored: known fields only, with defaults."""
    head = {"apiVersion": f"{GROUP}/v1beta1", "kind": obj["kind"], "metadata": copy_of(obj.get("metadata") or {})}
    if obj["kind"] == "Fischer":
        names = [name for name in obj.get("disallowedFlunders") or () if isinstance(name, str)]
        return {**head, **({"disallowedFlunders": names} if names else {})}
    fields = obj.get("spec")
    if not isinstance(fields, dict):
        fields = {}
    if version == "v1beta1":
        known = ("flunderReference", "fischerReference", "referenceType")
        spec = {name: text for name in known if isinstance(text := fields.get(name), str) and text}
    else:
        reference = fields.get("reference")
        kind = fields.get("referenceType") or ("Flunder" if reference else "")
        spec = {"referenceType": kind} if kind else {}
        if kind in _REFERENCES and reference:
            spec[_REFERENCES[kind]] = reference
    return {**head, "spec": spec, "status": {}}


def from_storage(obj: Obj, version: str) -> Obj:
    """A stored object as a version shows it."""
    shown = {**obj, "apiVersion": f"{GROUP}/{version}"}
    if version == "v1alpha1" and obj["kind"] == "Flunder":
        spec = obj["spec"]
        kind = spec.get("referenceType")
        reference = spec.get(_REFERENCES.get(kind, ""))
        shown["spec"] = {**({"reference": reference} if reference else {}), **({"referenceType": kind} if kind else {})}
    return shown


def problems_of(obj: Obj) -> list[FieldError]:
    """What is wrong with a stored flunder."""
    spec = obj.get("spec") or {}
    kind = spec.get("referenceType", "")
    flunder, fischer = spec.get("flunderReference", ""), spec.get("fischerReference", "")
    problems: list[FieldError] = []
    if flunder and fischer:
        why = "cannot be set with flunderReference at the same time"
        problems.append(FieldError.invalid("spec.fischerReference", fischer, why))
    elif flunder and kind != "Flunder":
        why = "cannot be set if referenceType is not Flunder"
        problems.append(FieldError.invalid("spec.flunderReference", flunder, why))
    elif fischer and kind != "Fischer":
        why = "cannot be set if referenceType is not Fischer"
        problems.append(FieldError.invalid("spec.fischerReference", fischer, why))
    elif kind in _REFERENCES and not spec.get(_REFERENCES[kind]):
        field = _REFERENCES[kind]
        problems.append(FieldError.invalid(f"spec.{field}", "", f"cannot be empty if referenceType is {kind}"))
    if kind and kind not in _REFERENCES:
        problems.append(FieldError.invalid("spec.referenceType", kind, "must be Flunder or Fischer"))
    return problems


def bans(fischers: list[Obj], name: str) -> bool:
    """Whether one of the fischers forbids a flunder of that name."""
    return any(name in dig(fischer, "disallowedFlunders", default=()) for fischer in fischers)
