"""CertificateSigningRequests: the server sets the requesting user, and the request is immutable."""

from __future__ import annotations

import base64
import binascii

from srearena.cluster.embedded.go_text import quoted
from srearena.cluster.embedded.objects import Obj
from srearena.cluster.embedded.registry import names
from srearena.cluster.embedded.registry.errors import FieldError
from srearena.cluster.embedded.registry.strategies import checks
from srearena.cluster.embedded.registry.strategies.checks import Problems
from srearena.cluster.embedded.registry.strategies.parts import items, part
from srearena.cluster.embedded.registry.strategy import Strategy, WriteContext

_USAGES = (
    "any",
    "cert sign",
    "client auth",
    "code signing",
    "content commitment",
    "crl sign",
    "data encipherment",
    "decipher only",
    "digital signature",
    "email protection",
    "encipher only",
    "ipsec end system",
    "ipsec tunnel",
    "ipsec user",
    "key agreement",
    "key encipherment",
    "microsoft sgc",
    "netscape sgc",
    "ocsp signing",
    "s/mime",
    "server auth",
    "signing",
    "timestamping",
)
_BEGIN = b"-----BEGIN CERTIFICATE REQUEST-----"
_SHORTEST = 600
_CONDITIONS_FOR_APPROVAL = ("Approved", "Denied")
_FINAL = ("Approved", "Denied", "Failed")


def _default(obj: Obj) -> None:
    part(obj, "spec")
    part(obj, "status")


def _prepare_create(obj: Obj, context: WriteContext) -> None:
    spec, user = obj["spec"], context.user
    for key in ("username", "uid", "groups", "extra"):
        spec.pop(key, None)
    spec["username"] = user.name
    if user.uid:
        spec["uid"] = user.uid
    if user.groups:
        spec["groups"] = list(user.groups)
    if user.extra:
        spec["extra"] = {key: list(values) for key, values in user.extra.items()}
    obj["status"] = {}


def _prepare_update(new: Obj, old: Obj, context: WriteContext) -> None:
    new["spec"] = old["spec"]


def _prepare_approval(new: Obj, old: Obj, context: WriteContext) -> None:
    """Through `approval`, only the conditions change."""
    conditions = _timed(items(new.get("status"), "conditions"), context)
    new["spec"] = old["spec"]
    new["status"] = {**(old.get("status") or {})}
    if conditions:
        new["status"]["conditions"] = conditions


def _prepare_status(new: Obj, old: Obj, context: WriteContext) -> None:
    """Approval and denial stay what they were: the status endpoint is for signers."""
    status = new.get("status") or {}
    conditions = _timed(items(status, "conditions"), context)
    kept = [c for c in items(old.get("status"), "conditions") if c.get("type") in _CONDITIONS_FOR_APPROVAL]
    others = [c for c in conditions if c.get("type") not in _CONDITIONS_FOR_APPROVAL]
    if kept or others:
        new["status"] = {**status, "conditions": [*kept, *others]}


def _timed(conditions: list[Obj], context: WriteContext) -> list[Obj]:
    now = context.clock.timestamp()
    moments = {"lastUpdateTime": now, "lastTransitionTime": now}
    return [{**moments, **{k: v for k, v in c.items() if v is not None}} for c in conditions]


def _validate_create(obj: Obj) -> Problems:
    problems: Problems = []
    spec = obj.get("spec") or {}
    problem = _request_problem(spec.get("request"))
    if problem:
        problems.append(FieldError.invalid("spec.request", spec.get("request"), problem))
    usages = items(spec, "usages")
    checks.required(problems, "spec.usages", usages)
    seen: set[str] = set()
    for index, usage in enumerate(usages):
        checks.one_of(problems, f"spec.usages[{index}]", usage, _USAGES)
        checks.unique(problems, f"spec.usages[{index}]", usage, seen)
    _signer(problems, "spec.signerName", spec.get("signerName") or "")
    seconds = spec.get("expirationSeconds")
    if seconds is not None and seconds < _SHORTEST:
        text = "may not specify a duration less than 600 seconds (10 minutes)"
        problems.append(FieldError.invalid("spec.expirationSeconds", seconds, text))
    return problems


def _request_problem(request: str | None) -> str:
    try:
        content = base64.b64decode(request or "", validate=True)
    except (binascii.Error, ValueError):
        content = b""
    return "" if content.strip().startswith(_BEGIN) else "PEM block type must be CERTIFICATE REQUEST"


def _signer(problems: Problems, path: str, signer: str) -> None:
    if not checks.required(problems, path, signer):
        return
    domain, slash, name = signer.partition("/")
    if not slash or "/" in name:
        text = "must be a fully qualified domain and path of the form 'example.com/signer-name'"
        problems.append(FieldError.invalid(path, signer, text))
        return
    for label in domain.split("."):
        wrong = names.label_errors(label)
        for text in wrong:
            problems.append(FieldError.invalid(path, domain, f"validating label {quoted(label)}: {text}"))
        if wrong:
            break
    if "." not in domain:
        text = "should be a domain with at least two segments separated by dots"
        problems.append(FieldError.invalid(path, domain, text))
    for label in name.split("."):
        wrong = names.subdomain_errors(label)
        for text in wrong:
            problems.append(FieldError.invalid(path, name, f"validating label {quoted(label)}: {text}"))
        if wrong:
            break


def _validate_conditions(new: Obj, old: Obj) -> Problems:
    problems: Problems = []
    path, conditions = "status.conditions", items(new.get("status"), "conditions")
    seen: set[str] = set()
    for index, condition in enumerate(conditions):
        kind, status = condition.get("type") or "", condition.get("status") or ""
        checks.required(problems, f"{path}[{index}].type", kind)
        supported = ("True",) if kind in _FINAL else ("False", "True", "Unknown")
        checks.required_one_of(problems, f"{path}[{index}].status", status, supported)
        if kind in _CONDITIONS_FOR_APPROVAL and seen & (set(_CONDITIONS_FOR_APPROVAL) - {kind}):
            text = "Approved and Denied conditions are mutually exclusive"
            problems.append(FieldError.invalid(path, kind, text))
        checks.unique(problems, f"{path}[{index}].type", kind, seen)
    for kind in _FINAL:
        was = any(c.get("type") == kind for c in items(old.get("status"), "conditions"))
        if was and kind not in seen:
            text = f"updates may not remove a condition of type {quoted(kind)}"
            problems.append(FieldError.forbidden(path, text))
    return problems


def _any_name(name: str, is_prefix: bool) -> list[str]:
    return names.path_segment_errors(name, is_prefix)


STRATEGIES = {
    "certificatesigningrequests.certificates.k8s.io": Strategy(
        default=_default,
        prepare_create=_prepare_create,
        prepare_update=_prepare_update,
        prepare_status=_prepare_status,
        validate_create=_validate_create,
        validate_status=_validate_conditions,
        name_errors=_any_name,
        subresources={
            "approval": Strategy(
                default=_default,
                prepare_update=_prepare_approval,
                validate_update=_validate_conditions,
                name_errors=_any_name,
            )
        },
    ),
}
