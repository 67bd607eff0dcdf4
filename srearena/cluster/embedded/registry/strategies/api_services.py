"""APIServices: which server answers for a group and version."""

from __future__ import annotations

from srearena.cluster.embedded.go_text import quoted
from srearena.cluster.embedded.objects import Obj, name_of
from srearena.cluster.embedded.registry import names
from srearena.cluster.embedded.registry.errors import FieldError
from srearena.cluster.embedded.registry.strategies import checks
from srearena.cluster.embedded.registry.strategies.checks import Problems
from srearena.cluster.embedded.registry.strategies.parts import fill, part
from srearena.cluster.embedded.registry.strategy import Strategy

_HIGHEST_GROUP, _HIGHEST_VERSION = 20000, 1000


def _default(obj: Obj) -> None:
    service = part(obj, "spec").get("service")
    if service is not None:
        fill(service, {"port": 443})
    part(obj, "status")


def _validate(obj: Obj) -> Problems:
    problems: Problems = []
    spec = obj.get("spec") or {}
    group, version, service = spec.get("group") or "", spec.get("version") or "", spec.get("service")
    if name_of(obj) != f"{version}.{group}":
        text = f'must be `spec.version+"."+spec.group`: {quoted(f"{version}.{group}")}'
        problems.append(FieldError.invalid("metadata.name", name_of(obj), text))
    if not version:
        problems.append(FieldError.required("spec.version"))
    for key, highest in (("groupPriorityMinimum", _HIGHEST_GROUP), ("versionPriority", _HIGHEST_VERSION)):
        value = spec.get(key) or 0
        if not 0 < value <= highest:
            text = f"must be positive and less than {highest}"
            problems.append(FieldError.invalid(f"spec.{key}", value, text))
    if service is None:
        if spec.get("caBundle"):
            text = "local APIServices may not have a caBundle"
            problems.append(FieldError.invalid("spec.caBundle", "<caBundle>", text))
        if spec.get("insecureSkipTLSVerify"):
            text = "local APIServices may not have insecureSkipTLSVerify"
            problems.append(FieldError.invalid("spec.insecureSkipTLSVerify", True, text))
        return problems
    checks.required(problems, "spec.service.namespace", service.get("namespace"))
    checks.required(problems, "spec.service.name", service.get("name"))
    port = service.get("port") or 0
    if not 1 <= port <= 65535:
        problems.append(FieldError.invalid("spec.service.port", port, f"port is not valid: {checks.PORT_RANGE}"))
    if spec.get("insecureSkipTLSVerify") and spec.get("caBundle"):
        text = "may not be true if caBundle is present"
        problems.append(FieldError.invalid("spec.insecureSkipTLSVerify", True, text))
    return problems


STRATEGIES = {
    "apiservices.apiregistration.k8s.io": Strategy(
        default=_default, validate=_validate, name_errors=names.path_segment_errors
    ),
}
